"""Open a writer of rows, for each format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from ringhaul.cql.types import CqlType
from ringhaul.formats.write.compress import Stream
from ringhaul.formats.write.csv import CsvLines
from ringhaul.formats.write.jsonl import JsonLines
from ringhaul.formats.write.lines import LineWriter
from ringhaul.formats.write.options import OutputFormat
from ringhaul.formats.write.parquet import ParquetWriter


class RowWriter(Protocol):
    """Writes batches whose columns have the Arrow forms of their CQL types."""

    def write(self, batch: pa.RecordBatch) -> list[int]:
        """Write rows. Raises what the stream raises.

        Returns the rows whose records are too long for a load to read.
        """

    def close(self) -> None:
        """Write the end of the file. The stream stays open."""

    def abandon(self) -> None:
        """End without writing to the stream again."""

    @property
    def pending_bytes(self) -> int:
        """About how many bytes were written but are not yet in the stream."""


def open_writer(
    fmt: OutputFormat, stream: Stream, names: Sequence[str], types: Sequence[CqlType]
) -> RowWriter:
    """Open a writer of columns with these names and types; it may write to `stream` at once.

    A writer that is not closed leaves an incomplete file.
    """
    if fmt.kind == "parquet":
        return ParquetWriter(fmt, stream, names, types)
    if fmt.kind == "jsonl":
        return LineWriter(fmt, stream, JsonLines(fmt, names, types))
    return LineWriter(fmt, stream, CsvLines(fmt, names, types))
