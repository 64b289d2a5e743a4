"""Read the fields of a block, and encode those that are loaded into columns.

Each format of sources has a reader. It reads the requested records in the form of the format,
reports which of them cannot be read and why, and returns what a record holds that cannot be
loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ringhaul.breadcrumb import TRAIL
from ringhaul.cql.cells import NULL_LENGTH, UNSET_LENGTH, Cells
from ringhaul.cql.empties import EMPTIABLE, rows_with_empty_elements
from ringhaul.cql.nested import encode_column, encode_json, parse_json
from ringhaul.cql.typed import encode_typed, refusal
from ringhaul.formats.csv_read import FieldReject, read_block
from ringhaul.formats.json_text import parse_spelt
from ringhaul.formats.jsonl_read import read_objects
from ringhaul.formats.parquet_json import record_json
from ringhaul.formats.parquet_read import RowBlock
from ringhaul.formats.records import count_line_ends
from ringhaul.formats.split import Block
from ringhaul.records.job import LoadJob, LoadSource
from ringhaul.records.row_fields import WRITETIME, ColumnEncoder, ttls_or, write_times_or

#: A piece of a source: lines of text, or typed rows.
AnyBlock = Block | RowBlock
#: (stage, column if one is at fault, reason) of a record that cannot become a row.
Fault = tuple[str, str | None, str]
Mask = npt.NDArray[np.bool_]


class Parsed(NamedTuple):
    """The fields of a block's records that could be read."""

    #: One per wanted field, in the form that `FieldReader.encode` takes.
    columns: list[Any]
    records: npt.NDArray[np.int64]  #: index in the block of each row's record
    faults: dict[int, Fault]  #: by record, for those without a row


class Kept(NamedTuple):
    """Where a record is that cannot be loaded, and what it holds."""

    offset: int
    length: int
    data: Callable[[], bytes] | None  #: None: only its place is known


class FieldReader(Protocol):
    """Reads the blocks of one source."""

    @property
    def encode(self) -> ColumnEncoder: ...

    def parse(self, block: Any, chosen: Mask) -> Parsed:
        """Parse the records for which `chosen` (bool per record) is true."""

    def lines(self, block: Any, records: Sequence[int]) -> list[int]:
        """Return the line on which each record begins; `records` ascend."""

    def kept(self, block: Any, record: int) -> Kept: ...


class TableColumns:
    """The loaded columns, in the order in which they are bound, followed by the fields that say
    how a row is written (`row_fields.py`)."""

    def __init__(self, job: LoadJob, source: LoadSource) -> None:
        self.names = [column for _, column in source.mapping]
        self.kinds = [job.table.parsed_type(column) for column in self.names]
        missing = UNSET_LENGTH if job.nulls == "unset" else NULL_LENGTH
        key = job.table.primary_key
        self._null_lengths = [NULL_LENGTH if c in key else missing for c in self.names]
        #: Lists whose elements may be empty.
        self._spelt_out = [
            kind.name == "list" and kind.of[0].name in EMPTIABLE for kind in self.kinds
        ]
        self._text = job.text
        self._row_fields = source.row_fields
        self._ttl_s = job.ttl_s
        wanted = source.wanted(job)
        self._read_at = [] if job.transforms else [wanted.index(name) for name in source.loaded]

    def of_read(self, columns: list[Any]) -> list[Any]:
        """Return the values at each place, from `Parsed.columns`: a field may be at two places."""
        return [columns[at] for at in self._read_at]

    def label(self, place: int) -> str:
        """Return what the values at `place` are for, as text for messages."""
        columns_count = len(self.names)
        if place < columns_count:
            return self.names[place]
        return self._row_fields[place - columns_count][1].label

    def refusal(self, place: int, arrow: pa.DataType) -> str | None:
        """Return why values of an Arrow type cannot be loaded at `place`; None: they can."""
        columns_count = len(self.names)
        if place < columns_count:
            return refusal(self.kinds[place], arrow)
        return self._row_fields[place - columns_count][1].refusal(arrow)

    def encode(
        self,
        encode: ColumnEncoder,
        place: int,
        values: Any,
        records: npt.NDArray[np.int64],
        faults: dict[int, Fault],
    ) -> Cells:
        """Encode the values at `place`; a fault goes to `faults`, unless its record has one."""
        columns_count = len(self.names)
        TRAIL.column(self.label(place))
        if place < columns_count:
            name = self.names[place]
            column = encode(
                self.kinds[place], values, self._text, null_length=self._null_lengths[place]
            )
            if self._spelt_out[place]:
                self._refuse_empties(place, column.cells, records, faults)
        else:
            name, meant = self._row_fields[place - columns_count]
            column = meant.encode(encode, values, self._text)
        for row, fault in column.faults.items():
            faults.setdefault(int(records[row]), ("cast", name, fault.words(name)))
        return column.cells

    def _refuse_empties(
        self, place: int, lists: Cells, records: npt.NDArray[np.int64], faults: dict[int, Fault]
    ) -> None:
        """Reject lists with empty elements.

        Bound as a list, such a value causes an error of the server, or a null in a frozen list. As
        a literal in CQL it is kept.
        """
        name, (of,) = self.names[place], self.kinds[place].of
        for row in rows_with_empty_elements(of, lists):
            reason = (
                f"cast list: an empty value of type {of}, which the server takes in a list "
                "only as a literal: INSERT the row with cqlsh"
            )
            faults.setdefault(int(records[row]), ("cast", name, reason))

    def bound(self, cells: list[Cells], timestamps: npt.NDArray[np.int64]) -> list[Cells]:
        """Return the cells to bind, from those of all places: the columns, the timestamp, and the
        TTL if rows have their own. `timestamps`: microseconds, for rows without their own."""
        columns_count = len(self.names)
        bound = [*cells[:columns_count], Cells.fixed(timestamps.astype(">i8"))]
        for (_, meant), own in zip(self._row_fields, cells[columns_count:], strict=True):
            if meant is WRITETIME:
                bound[columns_count] = write_times_or(own, timestamps)
            else:
                bound.append(ttls_or(own, self._ttl_s))
        return bound


class _Lines:
    """Sources whose records are text: a reject keeps the bytes of its record."""

    def lines(self, block: Block, records: Sequence[int]) -> list[int]:
        """Return the lines of records, counted once over the block.

        Counting from the beginning for each record would take minutes in a block of bad records.
        """
        lines = []
        line, counted_bytes = block.position.line, 0
        for record in records:
            start = int(block.starts[record])
            line += count_line_ends(block.data, counted_bytes, start, block.line_end)
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

    encode = staticmethod(encode_column)

    def __init__(self, job: LoadJob, source: LoadSource) -> None:
        self._fields, self._wanted = source.fields, source.wanted(job)
        self._dialect = source.dialect(job)

    def parse(self, block: Block, chosen: Mask) -> Parsed:
        text = read_block(block, self._dialect, self._fields, self._wanted)
        faults = _parse_faults(text.rejects, chosen)
        records, arrays = text.records, text.columns
        if not chosen.all():
            keep = chosen[records]
            records, arrays = records[keep], [a.filter(pa.array(keep)) for a in arrays]
        return Parsed(arrays, records, faults)


class JsonFields(_Lines):
    """JSON Lines: columns by name; a name that is missing is null."""

    encode = staticmethod(encode_json)

    def __init__(self, job: LoadJob, source: LoadSource) -> None:
        self._wanted = source.wanted(job)
        self._dialect = source.dialect(job)
        #: Names that an object may have although they are not loaded; None: any.
        self._ignored = None if source.any_fields else source.fields
        self._parse = parse_spelt if job.transforms or job.text.accepts("json-text") else parse_json

    def parse(self, block: Block, chosen: Mask) -> Parsed:
        found = read_objects(
            block, self._dialect, self._wanted, self._ignored, chosen=chosen, parse=self._parse
        )
        return Parsed(list(found.columns), found.records, _parse_faults(found.rejects, chosen))


class ParquetFields:
    """Parquet: columns have types; a record is kept as JSON, as the file has no bytes of it."""

    encode = staticmethod(encode_typed)

    def __init__(self, job: LoadJob, source: LoadSource) -> None:
        self._kinds, self._text = source.wanted_types(job), job.text

    def parse(self, block: RowBlock, chosen: Mask) -> Parsed:
        records = np.flatnonzero(chosen).astype(np.int64)
        batch = block.batch if chosen.all() else block.batch.filter(pa.array(chosen))
        return Parsed(batch.columns, records, {})

    def lines(self, block: RowBlock, records: Sequence[int]) -> list[int]:
        return [block.position.line + record for record in records]

    def kept(self, block: RowBlock, record: int) -> Kept:
        data = record_json(block.batch, record, self._kinds, self._text)
        return Kept(block.position.offset_bytes, len(data), lambda: data)


def _parse_faults(rejects: Sequence[FieldReject], chosen: Mask) -> dict[int, Fault]:
    faults: dict[int, Fault] = {}
    for reject in rejects:
        if chosen[reject.record]:
            faults.setdefault(reject.record, (reject.stage, reject.column, reject.reason))
    return faults


_READERS: dict[str, Callable[[LoadJob, LoadSource], FieldReader]] = {
    "csv": CsvFields,
    "jsonl": JsonFields,
    "parquet": ParquetFields,
}


def field_reader(job: LoadJob, source: LoadSource) -> FieldReader:
    """Return the reader for the blocks of a source."""
    return _READERS[source.format](job, source)
