"""The bytes of a single file, joined from the bytes of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import pyarrow.parquet as pq

from ringhaul.cql.types import CqlType
from ringhaul.errors import OutputUnusable
from ringhaul.formats.write.compress import Compressed
from ringhaul.formats.write.csv import CsvLines
from ringhaul.formats.write.jsonl import JsonLines
from ringhaul.formats.write.parquet import ParquetWriter
from ringhaul.output.job import Output
from ringhaul.output.parts import Measured, PartInfo
from ringhaul.storage.folders import Folder

_COPY_BYTES = 1 << 20


def put_parts(
    output: Output,
    staging: Folder,
    parts: Sequence[PartInfo],
    names: Sequence[str],
    types: Sequence[CqlType],
    out: Measured,
) -> None:
    """Write the rows of the parts to `out`, as one file of the output's format."""
    if output.format.kind == "parquet":
        writer = ParquetWriter(output.format, out, names, types)
        for part in parts:
            with (
                staging.open(part.name) as file,
                pq.ParquetFile(file, page_checksum_verification=True) as read,
            ):
                for group in range(read.num_row_groups):
                    writer.append(read.read_row_group(group))
        writer.close()
        return
    frame = _Frame(output, names, types)
    late = output.is_compressed_late
    head = Compressed(output.format.compression, out)
    rest = head if late else Compressed("none", out)
    head.write(frame.head)
    if not late and (frame.head or not parts):
        head.finish()
    for number, part in enumerate(parts):
        if number:
            rest.write(frame.joint)
        with staging.open(part.name) as file:
            _put_bytes(file, frame.part_head, part.bytes - frame.part_tail, rest)
    rest.write(frame.tail)
    rest.finish()


class _Frame:
    """What surrounds the parts in a joined file, and how many bytes surround each part's rows."""

    def __init__(self, output: Output, names: Sequence[str], types: Sequence[CqlType]) -> None:
        self.head = self.tail = self.joint = b""
        self.part_head = self.part_tail = 0
        fmt = output.format
        if fmt.kind == "csv":
            self.head = CsvLines(fmt, names, types).head
        elif fmt.json_layout is not None:
            lines = JsonLines(fmt, names, types)
            self.head, self.tail, self.joint = lines.head, lines.tail, bytes(fmt.encode(b",\n"))
            self.part_head, self.part_tail = len(lines.head), len(lines.tail)


def _put_bytes(file: BinaryIO, start: int, end: int, out: Compressed) -> None:
    """Copy the bytes of a file from `start` up to `end`."""
    file.seek(start)
    left = end - start
    while left > 0:
        piece = file.read(min(left, _COPY_BYTES))
        if not piece:
            raise OutputUnusable(f"a part became shorter while it was copied, by {left:,} bytes")
        out.write(piece)
        left -= len(piece)
