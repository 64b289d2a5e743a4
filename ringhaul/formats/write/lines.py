"""Formats of lines, which share the stream, its compression, and bounds of memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.errors import OutputUnusable
from ringhaul.formats.dialect import RECORD_BYTES_MAX
from ringhaul.formats.write.compress import Compressed, Stream
from ringhaul.formats.write.options import OutputFormat
from ringhaul.option_names import job_option

#: Rows are joined into one text, which Arrow bounds to 2 GiB; it is seldom more than 4 x as long as
#: the data.
STEP_BYTES = 64 * 2**20


class Lines(Protocol):
    """One format of lines."""

    @property
    def head(self) -> bytes:
        """The beginning of the file, encoded."""

    @property
    def tail(self) -> bytes:
        """The end of the file, encoded."""

    @property
    def joint_bytes(self) -> int:
        """Bytes at the start of a row that separate it from the previous one."""

    def lines(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return one text per row, with its line end."""


class LineWriter:
    """Writes the lines of a format to a stream."""

    def __init__(self, fmt: OutputFormat, stream: Stream, lines: Lines) -> None:
        self._lines, self._format = lines, fmt
        self._first = True
        self._compressed = Compressed(fmt.compression, stream)
        self._compressed.write(lines.head)

    def write(self, batch: pa.RecordBatch) -> list[int]:
        too_long: list[int] = []
        first = 0
        for step in _steps(batch):
            text = self._lines.lines(step)
            _, offsets, data = text.buffers()
            # All values together are one run of bytes: the lines as written to the file.
            ends = memoryview(offsets).cast("i")
            start, end = ends[text.offset], ends[text.offset + len(text)]
            if self._first and end > start:
                start += self._lines.joint_bytes
                self._first = False
            self._compressed.write(self._encoded(memoryview(data)[start:end], step))
            if end - start > RECORD_BYTES_MAX:
                lengths = pc.binary_length(text).to_numpy()
                # The limit of a reader does not count the line end.
                long = np.flatnonzero(lengths > RECORD_BYTES_MAX + 1)
                too_long += (first + long).tolist()
            first += step.num_rows
        return too_long

    def _encoded(self, text: memoryview, rows: pa.RecordBatch) -> bytes | memoryview:
        try:
            return self._format.encode(text)
        except UnicodeEncodeError as error:
            character = error.object[error.start]
            raise OutputUnusable(
                f"{_column_with(rows, character)} holds {character!r}, which the encoding "
                f"{self._format.encoding} does not have: give another {job_option('encoding')}, "
                "such as utf-8"
            ) from error

    def close(self) -> None:
        if self._lines.tail:
            self._compressed.write(self._lines.tail)
        self._compressed.finish()

    def abandon(self) -> None:
        pass

    @property
    def pending_bytes(self) -> int:
        return 0


def _column_with(rows: pa.RecordBatch, character: str) -> str:
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            found = pc.match_substring(column, character)
            if pc.any(found).as_py():
                return f"column {name}"
    return "a nested value"


def _steps(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if not batch.num_rows:
        return
    if batch.nbytes <= STEP_BYTES or batch.num_rows == 1:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _steps(batch.slice(0, half))
    yield from _steps(batch.slice(half))
