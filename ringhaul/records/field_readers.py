"""Read the fields of a block: a reader for each format of sources.

A reader parses the requested records in the form of the format, reports which records cannot be
read and why, and returns what a record holds that cannot be loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ringhaul.cql.nested import encode_column, encode_json, parse_json
from ringhaul.cql.typed import encode_typed
from ringhaul.formats.csv_read import FieldReject, TextBlock, read_block
from ringhaul.formats.fixed_read import read_fixed
from ringhaul.formats.json_text import parse_spelt
from ringhaul.formats.jsonl_read import read_objects
from ringhaul.formats.parquet_json import record_json
from ringhaul.formats.parquet_read import RowBlock, wild_times
from ringhaul.formats.records import count_line_ends
from ringhaul.formats.split import Block
from ringhaul.records.blanks import TEXTS
from ringhaul.records.job import Input, LoadSource
from ringhaul.records.row_fields import (
    ColumnEncoder,
)

#: A piece of a source: lines of text, or typed rows.
AnyBlock = Block | RowBlock
#: (stage, column at fault if any, reason) of a record that cannot become a row.
Fault = tuple[str, str | None, str]
Mask = npt.NDArray[np.bool_]


class Parsed(NamedTuple):
    """The fields of a block's records that could be read."""

    #: A column per wanted field, in the form that `FieldReader.encode` takes.
    columns: list[Any]
    records: npt.NDArray[np.int64]  #: index in the block of each row's record
    faults: dict[int, Fault]  #: by record, for those without a row


class Kept(NamedTuple):
    """The place and the content of a record that cannot be loaded."""

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
    """CSV: all columns are text, in nested columns JSON."""

    encode = staticmethod(encode_column)

    def __init__(self, job: Input, source: LoadSource) -> None:
        self._fields, self._wanted = source.fields, source.wanted(job)
        self._dialect = source.dialect(job)
        #: Fields in which nothing is the empty text, or later null if the type has no such value.
        self._kept: frozenset[str] = frozenset()
        if job.empty_texts:
            table = job.table
            nulls = {
                field
                for field, column in source.mapping
                if column not in job.empty_texts and table.parsed_type(column).name in TEXTS
            }
            self._kept = frozenset(self._wanted) - nulls

    def parse(self, block: Block, chosen: Mask) -> Parsed:
        text = self._read(block)
        faults = _parse_faults(text.rejects, chosen)
        records, arrays = text.records, text.columns
        if not chosen.all():
            keep = chosen[records]
            records, arrays = records[keep], [a.filter(pa.array(keep)) for a in arrays]
        return Parsed(arrays, records, faults)

    def _read(self, block: Block) -> TextBlock:
        return read_block(block, self._dialect, self._fields, self._wanted, self._kept)


class FixedFields(CsvFields):
    """Fixed-width text: like CSV, but a field is found by its position."""

    def __init__(self, job: Input, source: LoadSource) -> None:
        super().__init__(job, source)
        self._layout = source.layout

    def _read(self, block: Block) -> TextBlock:
        return read_fixed(block, self._dialect, self._layout, self._wanted, self._kept)


class JsonFields(_Lines):
    """JSON Lines: columns by name; a name that is missing is null."""

    encode = staticmethod(encode_json)

    def __init__(self, job: Input, source: LoadSource) -> None:
        self._wanted = source.wanted(job)
        self._dialect = source.dialect(job)
        #: Names that an object may have although they are not loaded; None: any name.
        known = [*source.fields, *(path.partition(".")[0] for path in source.paths)]
        self._ignored = None if source.any_fields else known
        self._paths = [path for path in source.paths if path in self._wanted]
        self._parse = parse_spelt if job.transforms or job.text.accepts("json-text") else parse_json

    def parse(self, block: Block, chosen: Mask) -> Parsed:
        found = read_objects(
            *(block, self._dialect, self._wanted, self._ignored),
            chosen=chosen,
            parse=self._parse,
            paths=self._paths,
        )
        return Parsed(list(found.columns), found.records, _parse_faults(found.rejects, chosen))


class ParquetFields:
    """Parquet: columns have types; a record is kept as JSON, as the file has no bytes of it."""

    encode = staticmethod(encode_typed)

    def __init__(self, job: Input, source: LoadSource) -> None:
        self._kinds, self._text = source.wanted_types(job), job.text

    def parse(self, block: RowBlock, chosen: Mask) -> Parsed:
        records = np.flatnonzero(chosen).astype(np.int64)
        batch = block.batch if chosen.all() else block.batch.filter(pa.array(chosen))
        wild = wild_times(batch)
        if not wild:
            return Parsed(batch.columns, records, {})
        reason = "cast timestamp: INT96 outside the years 1 to 9999 is not read"
        faults: dict[int, Fault] = {
            int(records[row]): ("cast", name, reason) for row, name in wild.items()
        }
        good = np.ones(len(records), np.bool_)
        good[list(wild)] = False
        return Parsed(batch.filter(pa.array(good)).columns, records[good], faults)

    def lines(self, block: RowBlock, records: Sequence[int]) -> list[int]:
        return [block.position.line + record for record in records]

    def kept(self, block: RowBlock, record: int) -> Kept:
        batch, at = block.batch, record
        if wild := wild_times(batch.slice(record, 1)):
            # The reader made another time of the value: a reject must not bring it into the table.
            place, at = batch.schema.names.index(wild[0]), 0
            unknown = pa.nulls(1, batch.schema.field(place).type)
            batch = batch.slice(record, 1).set_column(place, wild[0], unknown)
        data = record_json(batch, at, self._kinds, self._text)
        return Kept(block.position.offset_bytes, len(data), lambda: data)


def _parse_faults(rejects: Sequence[FieldReject], chosen: Mask) -> dict[int, Fault]:
    faults: dict[int, Fault] = {}
    for reject in rejects:
        if chosen[reject.record]:
            faults.setdefault(reject.record, (reject.stage, reject.column, reject.reason))
    return faults


_READERS: dict[str, Callable[[Input, LoadSource], FieldReader]] = {
    "csv": CsvFields,
    "fixed": FixedFields,
    "jsonl": JsonFields,
    "parquet": ParquetFields,
}


def field_reader(job: Input, source: LoadSource) -> FieldReader:
    """Return the reader for the blocks of a source."""
    return _READERS[source.format](job, source)
