"""Parquet: columns in their Arrow forms, row groups of a bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ringhaul.cql.types import CqlType
from ringhaul.formats.write.compress import Stream
from ringhaul.formats.write.options import OutputFormat

#: A row group is written when it has this many rows or bytes in memory: large enough for
#: compression and for readers, small enough for a worker's memory.
GROUP_ROWS = 128 * 2**10
GROUP_BYTES = 32 * 2**20
#: Key of a field's metadata: the CQL type of the column, as text.
CQL_TYPE = b"cql_type"


class ParquetWriter:
    """Writes row groups. A uuid is Parquet's own UUID, but inside nested types 16 bytes."""

    def __init__(
        self, fmt: OutputFormat, stream: Stream, names: Sequence[str], types: Sequence[CqlType]
    ) -> None:
        fields = [
            pa.field(name, file_form(cql_type), metadata={CQL_TYPE: str(cql_type).encode()})
            for name, cql_type in zip(names, types, strict=True)
        ]
        self._schema = pa.schema(fields)
        self._stream = _KeptOpen(stream)
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self._stream, "w"),
            self._schema,
            compression=fmt.compression,
            write_statistics=True,
        )
        self._held: list[pa.RecordBatch] = []
        self._held_rows = self._held_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        while batch.num_rows:
            taken = batch.slice(0, GROUP_ROWS - self._held_rows)
            batch = batch.slice(taken.num_rows)
            self._held.append(taken)
            self._held_rows += taken.num_rows
            self._held_bytes += taken.nbytes
            if self._held_rows >= GROUP_ROWS or self._held_bytes >= GROUP_BYTES:
                self._write_group()

    def close(self) -> None:
        if self._held:
            self._write_group()
        self._writer.close()

    def abandon(self) -> None:
        # Arrow's writer would write its footer, sooner or later.
        self._stream.abandoned = True
        self._writer.close()

    @property
    def pending_bytes(self) -> int:
        return self._held_bytes

    def _write_group(self) -> None:
        columns = []
        for number, field in enumerate(self._schema):
            chunks = [batch.column(number) for batch in self._held]
            column = pa.chunked_array(chunks)
            if column.type != field.type:
                storage = [chunk.cast(field.type.storage_type) for chunk in chunks]
                column = pa.chunked_array(
                    [pa.ExtensionArray.from_storage(field.type, chunk) for chunk in storage]
                )
            columns.append(column)
        table = pa.Table.from_arrays(columns, schema=self._schema)
        self._held, self._held_rows, self._held_bytes = [], 0, 0
        self._writer.write_table(table, row_group_size=GROUP_ROWS)


def file_form(cql_type: CqlType) -> Any:
    """The Arrow type of a column in the file."""
    if cql_type.name in ("uuid", "timeuuid"):
        return pa.uuid()
    return cql_type.arrow()


class _KeptOpen:
    """A stream that Arrow may not close."""

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
