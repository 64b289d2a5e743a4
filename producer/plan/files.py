"""Ask a question about all source files, several at once, and read the fields of their records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from producer.plan.heads import LOOK_BYTES, SourceHead
from producer.request.input_draft import InputDraft
from ringhaul.cluster.schema import TableSchema
from ringhaul.errors import UsageError
from ringhaul.formats.csv_read import decode_bytes, parse_fields
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.fixed_read import fixed_dialect
from ringhaul.formats.jsonl_read import line_dialect
from ringhaul.formats.split import Block, Position, read_blocks
from ringhaul.mapping.targets import Targets
from ringhaul.option_names import input_option
from ringhaul.records.job import LoadSource
from ringhaul.records.unit import TO_THE_END
from ringhaul.sources.source import SourceFile
from ringhaul.storage.access import is_url

T = TypeVar("T")


#: Files behind URLs that are read at the same time: a thousand take some 10 s instead of 200.
REMOTE_AT_ONCE = 16


def each_file(files: Sequence[SourceFile], work: Callable[[SourceFile], T]) -> list[T]:
    """Return the results of `work` for each file, in order. Files behind URLs, which mean waiting,
    are processed several at once."""
    if not any(is_url(file.path) for file in files):
        return [work(file) for file in files]
    with ThreadPoolExecutor(REMOTE_AT_ONCE) as pool:
        return list(pool.map(work, files))


def first_fields(block: Block, dialect: CsvDialect) -> Iterator[list[bytes]]:
    """Yield the fields of each record of a block of CSV. This takes long for a record."""
    if block.defect is not None:
        return
    for begin, end in zip(block.starts.tolist(), block.ends.tolist(), strict=True):
        text = block.data[begin:end]
        if dialect.decoding == "block":
            text = decode_bytes(text, dialect.encoding)
        yield parse_fields(text, dialect)


def records_count(head: SourceHead, source: LoadSource, dialect: CsvDialect, most: int) -> int:
    """Count the records of a planned source, up to `most`."""
    if source.format == "parquet":
        return min(most, head.rows_count)
    if source.format == "fixed":
        dialect = fixed_dialect(dialect)
    elif source.format == "jsonl":
        dialect = line_dialect(dialect)
    begin = source.start_offset_bytes
    count = 0
    with head.records(begin, TO_THE_END, dialect) as stream:
        start = Position(begin, 0, source.start_line)
        for block in read_blocks(stream, dialect, block_bytes=LOOK_BYTES, start=start):
            count += block.records_count
            if count >= most:
                return most
    return count


def _refuse_columns(request: InputDraft, file: SourceFile, has: str) -> None:
    # A transform gets the same fields of every record; JSON Lines may not name them.
    columns = () if request.transforms and has.startswith("a name") else request.columns
    for option, given in (("columns", columns), ("no-header", not request.header)):
        if given:
            name = input_option(option)
            raise UsageError(f"{file.path}: {name} has no effect: the file has {has}")


def settled(request: InputDraft, targets: Targets, table: TableSchema, file: SourceFile) -> Targets:
    """Return the targets as far as the command uses them.

    Raises `UsageError` for a marker of a statement that a mapping leaves without a field.
    """
    if request.verifies:
        return targets.untimed
    if not request.by_name:
        return targets
    filled = {*(column for _, column in targets.mapping), *(c for c, _ in targets.constants)}
    for name in table.column_names:
        if name not in filled:
            mapping = input_option("mapping")
            raise UsageError(f"{file.path}: {mapping} gives nothing for the marker {name!r}")
    if targets.filled or targets.timed:
        raise UsageError(
            f"{input_option('mapping')}: functions and write times belong into the "
            "statement itself, as in VALUES (?, now()) USING TIMESTAMP ?"
        )
    return targets
