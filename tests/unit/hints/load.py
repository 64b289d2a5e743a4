"""Load a file as the command does, but for the cluster: what is said, and the rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from config.settings import load_settings
from producer.plan.empties import with_empties
from producer.request.load import load_draft
from ringhaul.cluster.schema import TableSchema
from ringhaul.errors import UsageError
from ringhaul.formats.split import Position
from ringhaul.records.reading import read_records
from ringhaul.records.rows import RowEncoder
from ringhaul.records.unit import TO_THE_END
from ringhaul.sources.find import find_sources
from tests.heads import dialect_warnings, plan_sources, with_separator
from tests.loads import load_job
from tests.options import parse_options
from tests.unit.records.test_rows import values

#: A row: column -> its text, whatever its type; a null has no entry.
Row = dict[str, str]


@dataclass(frozen=True)
class Outcome:
    """What a load does."""

    rows: list[Row]
    refused: str = ""  #: why nothing is loaded
    rejects: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """All messages."""
        return "\n".join((self.refused, *self.rejects, *self.warnings))


def load(path: Path, table: TableSchema, *arguments: str) -> Outcome:
    """Load a file with the options of a command line."""
    try:
        return _load(path, table, arguments)
    except UsageError as error:
        return Outcome([], refused=str(error))


def _load(path: Path, table: TableSchema, arguments: tuple[str, ...]) -> Outcome:
    options = parse_options("load", str(path), "-t", table.name, *arguments)
    request = load_draft(options, load_settings())
    files = find_sources([str(path)], request.dialect, request.file_format)
    request = with_separator(request, files)
    (source,) = plan_sources(request, files, table)
    assert source is not None
    job = load_job(
        table, source, dialect=request.dialect, text=request.text, transforms=request.transforms
    )
    job = with_empties(job, request)
    start = Position(source.start_offset_bytes, 0, source.start_line)
    encoder = RowEncoder(job, source)
    rows, rejects = [], []
    for block in read_records(source, job, start, TO_THE_END, 1 << 20):
        for part in encoder.parts(block):
            rejects += [reject.reason for reject in part.rejects]
            for encoded in part.rows:
                rows += [_row(job.table, source.mapping, row) for row in values(encoded)]
    warnings = dialect_warnings(request, [source], table)
    return Outcome(rows, rejects=tuple(rejects), warnings=tuple(warnings))


def _row(table: TableSchema, mapping: tuple[tuple[str, str], ...], row: list[object]) -> Row:
    found = {}
    for (_, column), raw in zip(mapping, row, strict=False):
        if isinstance(raw, bytes):
            whole = table.parsed_type(column).name in ("int", "bigint")
            found[column] = str(int.from_bytes(raw, signed=True)) if whole else raw.decode()
    return found
