"""The fields of a block as columns of cells, one class per format of sources.

Each reads the records that were asked for into the columns that are loaded, says which records
cannot become rows and why, and what was in a record that cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ringhaul.cql.cells import NULL_LENGTH, UNSET_LENGTH, Cells
from ringhaul.cql.gluing import Column
from ringhaul.cql.nested import encode_column, encode_json
from ringhaul.cql.text import ENCODERS, encode_text
from ringhaul.cql.typed import encode_typed
from ringhaul.formats.csv_read import FieldReject, read_block
from ringhaul.formats.jsonl_read import read_objects
from ringhaul.formats.parquet_json import record_json
from ringhaul.formats.parquet_read import RowBlock
from ringhaul.formats.records import count_line_ends
from ringhaul.formats.split import Block
from ringhaul.load.job import LoadJob, LoadSource

#: A piece of a source: lines of text, or typed rows.
AnyBlock = Block | RowBlock
#: (stage, column if one is at fault, reason) of a record that cannot become a row.
Fault = tuple[str, str | None, str]
Mask = npt.NDArray[np.bool_]


class Fields(NamedTuple):
    """What a block holds; rows at fault are still among `records`, with cells of no meaning."""

    cells: list[Cells]  #: one per column of the mapping
    records: npt.NDArray[np.int64]  #: the record of each row, as an index into the block
    faults: dict[int, Fault]  #: by record: the first there is


class Kept(NamedTuple):
    """Where a record that cannot be loaded stands, and what it holds."""

    offset: int
    length: int
    data: Callable[[], bytes] | None  #: None: only its place is known


class FieldReader(Protocol):
    """Reads the blocks of one source."""

    def read(self, block: Any, asked: Mask) -> Fields:
        """The records where `asked` (bool per record) is true."""

    def lines(self, block: Any, records: Sequence[int]) -> list[int]:
        """The line on which each record begins; `records` ascend."""

    def kept(self, block: Any, record: int) -> Kept: ...


class _Columns:
    """What the columns of a mapping have in common in all formats."""

    def __init__(self, job: LoadJob, source: LoadSource) -> None:
        self.job, self.source = job, source
        self.dialect = source.dialect(job)
        self.wanted = [field for field, _ in source.mapping]
        self.columns = [column for _, column in source.mapping]
        self.kinds = [job.table.parsed_type(column) for column in self.columns]
        missing = UNSET_LENGTH if job.nulls == "unset" else NULL_LENGTH
        key = job.table.primary_key
        self.null_lengths = [NULL_LENGTH if c in key else missing for c in self.columns]

    def add(
        self, place: int, column: Column, records: npt.NDArray[np.int64], faults: dict[int, Fault]
    ) -> Cells:
        """The column's cells; its faults go to those of their records."""
        name = self.columns[place]
        for row, fault in column.faults.items():
            faults.setdefault(int(records[row]), ("cast", name, fault.words(name)))
        return column.cells


class _Lines(_Columns):
    """Sources whose records are text: each is kept as its bytes."""

    def lines(self, block: Block, records: Sequence[int]) -> list[int]:
        """Lines are counted once over the block: anew for each, a block of bad records would take
        minutes."""
        lines = []
        line, counted_bytes = block.position.line, 0
        for record in records:
            start = int(block.starts[record])
            line += count_line_ends(block.data, counted_bytes, start)
            counted_bytes = start
            lines.append(line)
        return lines

    def kept(self, block: Block, record: int) -> Kept:
        start, end = int(block.starts[record]), int(block.ends[record])
        whole = block.size_bytes == len(block.data)
        return Kept(
            offset=block.position.offset_bytes + start,
            length=end - start if whole else block.size_bytes,
            data=(lambda: bytes(block.data[start:end])) if whole else None,
        )


class CsvFields(_Lines):
    """CSV: all columns are text, nested ones JSON."""

    def read(self, block: Block, asked: Mask) -> Fields:
        text = read_block(block, self.dialect, self.source.fields, self.wanted)
        faults = _parse_faults(text.rejects, asked)
        records, cells = text.records, []
        arrays = text.columns
        if not asked.all():
            keep = asked[records]
            records, arrays = records[keep], [a.filter(pa.array(keep)) for a in arrays]
        fmt = self.job.text
        for place, values in enumerate(arrays):
            kind, null_length = self.kinds[place], self.null_lengths[place]
            if kind.name not in ENCODERS:
                column = encode_column(kind, values, fmt, null_length=null_length)
                cells.append(self.add(place, column, records, faults))
                continue
            encoded, bad = encode_text(kind.name, values, fmt, null_length=null_length)
            cells.append(encoded)
            for value in bad:
                fault = ("cast", self.columns[place], value.reason)
                faults.setdefault(int(records[value.row]), fault)
        return Fields(cells, records, faults)


class JsonFields(_Lines):
    """JSON Lines: columns by name; a name that is missing is null."""

    def __init__(self, job: LoadJob, source: LoadSource) -> None:
        super().__init__(job, source)
        #: Names that may stand in an object and are not loaded; None: any.
        self.ignored = None if source.any_fields else source.fields

    def read(self, block: Block, asked: Mask) -> Fields:
        found = read_objects(block, self.dialect, self.wanted, self.ignored, chosen=asked)
        faults = _parse_faults(found.rejects, asked)
        cells = []
        for place, values in enumerate(found.columns):
            column = encode_json(
                self.kinds[place], values, self.job.text, null_length=self.null_lengths[place]
            )
            cells.append(self.add(place, column, found.records, faults))
        return Fields(cells, found.records, faults)


class ParquetFields(_Columns):
    """Parquet: columns have types; a record is kept as JSON, as it has no bytes of its own."""

    def read(self, block: RowBlock, asked: Mask) -> Fields:
        records = np.flatnonzero(asked).astype(np.int64)
        batch = block.batch if asked.all() else block.batch.filter(pa.array(asked))
        faults: dict[int, Fault] = {}
        cells = []
        for place, values in enumerate(batch.columns):
            column = encode_typed(
                self.kinds[place], values, self.job.text, null_length=self.null_lengths[place]
            )
            cells.append(self.add(place, column, records, faults))
        return Fields(cells, records, faults)

    def lines(self, block: RowBlock, records: Sequence[int]) -> list[int]:
        return [block.position.line + record for record in records]

    def kept(self, block: RowBlock, record: int) -> Kept:
        data = record_json(block.batch, record, self.kinds)
        return Kept(block.position.offset_bytes, len(data), lambda: data)


def _parse_faults(rejects: Sequence[FieldReject], asked: Mask) -> dict[int, Fault]:
    faults: dict[int, Fault] = {}
    for reject in rejects:
        if asked[reject.record]:
            faults.setdefault(reject.record, (reject.stage, reject.column, reject.reason))
    return faults


_READERS: dict[str, Callable[[LoadJob, LoadSource], FieldReader]] = {
    "csv": CsvFields,
    "jsonl": JsonFields,
    "parquet": ParquetFields,
}


def field_reader(job: LoadJob, source: LoadSource) -> FieldReader:
    """What reads the blocks of a source."""
    return _READERS[source.format](job, source)
