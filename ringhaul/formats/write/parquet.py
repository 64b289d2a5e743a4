"""Parquet: columns in their Arrow types, in row groups of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ringhaul.cql.column import quote
from ringhaul.cql.types import CqlType
from ringhaul.errors import OutputUnusable
from ringhaul.formats.write.compress import Stream
from ringhaul.formats.write.options import OutputFormat
from ringhaul.option_names import job_option

#: A row group is written when it has this many rows or bytes in memory: large enough for
#: compression and for readers, small enough for a worker's memory.
GROUP_ROWS = 128 * 2**10
GROUP_BYTES = 32 * 2**20
#: A column is written without a dictionary if it has about as many different values as a group has
#: rows: the dictionary would be as large as the column, or grow to the 1 MiB at which Arrow drops
#: it, after looking up every value. Of this many values, spread over the first group, four are
#: repetitions if there are 128 * 2**10 different ones (the birthday problem: n * n / 2 / d).
#: Measured on keys, counters and timestamps among six columns: 45 % less CPU, 23 % smaller files.
_SAMPLE_VALUES, _REPEATED_MIN = 1024, 4
#: Integers without a dictionary are written as differences of a few bits (Parquet's encodings, part
#: 5). Measured on counters and timestamps, in any order: half the CPU that zstd needs for their
#: eight bytes each, a quarter fewer bytes, and a third of the time to read them. For random
#: integers of 64 bits: 0.011 us of CPU a value, and one percent more bytes.
_DELTA = "DELTA_BINARY_PACKED"
#: A column that is mostly null gives fewer samples, and has less to gain.
_PRESENT_MIN = 512
_DECIMAL_128_DIGITS_MAX = 38
#: Key of a field's metadata: the CQL type of the column, as text.
CQL_TYPE = b"cql_type"


class ParquetWriter:
    """Writes row groups. A uuid becomes Parquet's UUID, but 16 bytes inside nested types."""

    def __init__(
        self, fmt: OutputFormat, stream: Stream, names: Sequence[str], types: Sequence[CqlType]
    ) -> None:
        fields = [
            pa.field(
                name,
                file_form(cql_type, fmt.decimal_digits),
                metadata={CQL_TYPE: str(cql_type).encode()},
            )
            for name, cql_type in zip(names, types, strict=True)
        ]
        self._schema = pa.schema(fields)
        self._stream = _KeptOpen(stream)
        self._compression = fmt.compression
        self._writer: pq.ParquetWriter | None = None  # opened for the first rows, which decide how
        self._held: list[pa.RecordBatch] = []
        self._held_rows = self._held_bytes = 0

    def write(self, batch: pa.RecordBatch) -> list[int]:
        while batch.num_rows:
            taken = batch.slice(0, GROUP_ROWS - self._held_rows)
            batch = batch.slice(taken.num_rows)
            self._held.append(taken)
            self._held_rows += taken.num_rows
            self._held_bytes += taken.nbytes
            if self._held_rows >= GROUP_ROWS or self._held_bytes >= GROUP_BYTES:
                self._write_group()
        return []

    def append(self, table: pa.Table) -> None:
        """Write rows from a file of another such writer, in a separate row group."""
        self._opened(table).write_table(table, row_group_size=GROUP_ROWS)

    def close(self) -> None:
        if self._held:
            self._write_group()
        self._opened(self._schema.empty_table()).close()

    def abandon(self) -> None:
        # Arrow's writer would write its footer, sooner or later.
        self._stream.abandoned = True
        if self._writer is not None:
            self._writer.close()

    @property
    def pending_bytes(self) -> int:
        return self._held_bytes

    def _write_group(self) -> None:
        columns = []
        for number, field in enumerate(self._schema):
            chunks = [batch.column(number) for batch in self._held]
            column = pa.chunked_array(chunks)
            if pa.types.is_decimal(field.type):
                column = _decimals(column, field)
            elif column.type != field.type:
                storage = [chunk.cast(field.type.storage_type) for chunk in chunks]
                column = pa.chunked_array(
                    [pa.ExtensionArray.from_storage(field.type, chunk) for chunk in storage]
                )
            columns.append(column)
        table = pa.Table.from_arrays(columns, schema=self._schema)
        self._held, self._held_rows, self._held_bytes = [], 0, 0
        self._opened(table).write_table(table, row_group_size=GROUP_ROWS)

    def _opened(self, first: pa.Table) -> pq.ParquetWriter:
        if self._writer is None:
            plain = _without_dictionary(first)
            self._writer = pq.ParquetWriter(
                pa.PythonFile(self._stream, "w"),
                self._schema,
                compression=self._compression,
                write_statistics=True,
                write_page_checksum=True,
                use_dictionary=[path for path in _paths(self._schema) if path not in plain],
                column_encoding={
                    name: _DELTA for name in plain if _is_whole(self._schema.field(name).type)
                },
            )
        return self._writer


def _decimals(texts: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Return a column of decimals in the type that the user wants.

    Raises `OutputUnusable`, which shows the first value that the type cannot hold exactly.
    """
    try:
        return texts.cast(field.type)
    except pa.ArrowInvalid:
        found = (text for text in texts.to_pylist() if text is not None)
        value = next(text for text in found if not _fits(text, field.type))
    digits = f"{field.type.precision},{field.type.scale}"
    raise OutputUnusable(
        f"column {field.name} holds {quote(value)}, which does not fit "
        f"{job_option('decimal-type')} {digits} exactly: give more digits, or leave it out to "
        "write decimals as text"
    )


def _fits(text: str, decimal: pa.DataType) -> bool:
    try:
        pa.array([text]).cast(decimal)
    except pa.ArrowInvalid:
        return False
    return True


def _without_dictionary(first: pa.Table) -> list[str]:
    """Return the columns of the file that get no dictionary; see `_SAMPLE_VALUES`."""
    return [
        field.name
        for field, column in zip(first.schema, first.columns, strict=True)
        if not pa.types.is_nested(field.type) and _hardly_repeats(column)
    ]


def _paths(schema: pa.Schema) -> list[str]:
    """Return the names of a file's columns, for nested ones the paths of their leaves."""
    sink = pa.BufferOutputStream()
    pq.write_metadata(schema, sink)
    parts = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    return [parts.column(number).path for number in range(len(parts))]


def _is_whole(kind: pa.DataType) -> bool:
    """Return whether the values of a column are integers in the file."""
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind))


def _hardly_repeats(column: pa.ChunkedArray) -> bool:
    """Return whether a column has about as many different values as rows: see `_SAMPLE_VALUES`."""
    places = np.linspace(0, len(column) - 1, min(_SAMPLE_VALUES, len(column)), dtype=np.int64)
    values = column.take(pa.array(places)).combine_chunks()
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    present = len(values) - values.null_count
    repeated = present - pc.count_distinct(values).as_py()
    return bool(present >= _PRESENT_MIN and repeated < _REPEATED_MIN)


def file_form(cql_type: CqlType, decimal_digits: tuple[int, int] | None = None) -> Any:
    """Return the Arrow type of a column in the file. `decimal_digits`: digits of a decimal column,
    in all and after the point; decimals inside of nested types are text."""
    if cql_type.name == "decimal" and decimal_digits is not None:
        large = decimal_digits[0] > _DECIMAL_128_DIGITS_MAX
        return (pa.decimal256 if large else pa.decimal128)(*decimal_digits)
    if cql_type.name in ("uuid", "timeuuid"):
        return pa.uuid()
    return cql_type.arrow()


class _KeptOpen:
    """A stream that Arrow cannot close."""

    closed = False
    abandoned = False

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def write(self, data: bytes) -> int:
        return len(data) if self.abandoned else self._stream.write(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True
