"""Make one file of the parts of an unload, which then appears at once under its name.

Parts lie in a hidden folder beside the file. They are put one after the other in the order of their
tokens, a piece at a time, into a temporary file that is renamed when it is complete. A note in the
folder then says what the file holds, so that any command can repeat the rest after a crash.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Sequence
from typing import BinaryIO

import pyarrow.parquet as pq

from ringhaul.cql.types import CqlType
from ringhaul.errors import OutputUnusable
from ringhaul.formats.write.compress import Compressed
from ringhaul.output.job import Output
from ringhaul.output.parts import CHECKSUM, Measured, PartInfo
from ringhaul.storage.folders import Folder, open_folder

_COPY_BYTES = 1 << 20
#: The note in the folder of the parts: the file is complete.
_NOTE = "joined.json"


def parts_folder(file: str, job: str) -> str:
    """Return the hidden folder for the parts of a file, beside it."""
    folder, name = posixpath.split(file)
    return posixpath.join(folder, f".{name}.{job}")


def file_exists(file: str) -> bool:
    """Return whether there is a file under a path or a URL."""
    folder, name = posixpath.split(file)
    return name in open_folder(folder).sizes()


def join_parts(
    output: Output, parts: Sequence[PartInfo], names: Sequence[str], types: Sequence[CqlType]
) -> PartInfo:
    """Make `output.file` of the parts, in their order; return what it holds.

    Safe to repeat until `remove_parts`. Raises `OutputUnusable` and `OutputUnavailable`.
    """
    staging = open_folder(output.url)
    note = staging.read(_NOTE)
    if note is not None:
        return PartInfo.from_json(json.loads(note))
    sizes = staging.sizes()
    missing = [part.name for part in parts if sizes.get(part.name) != part.bytes]
    if missing:
        raise OutputUnusable(
            f"{output.url}: {len(missing):,} of {len(parts):,} files that workers wrote are not "
            f"what they were ({missing[0]}). Do all hosts share the folder of {output.file}?"
        )
    folder, name = posixpath.split(output.file)
    file = Measured(open_folder(folder).create(name), CHECKSUM)
    try:
        _put_parts(output, staging, parts, names, types, file)
        file.inner.publish()
    except BaseException:
        file.inner.discard()
        raise
    rows = sum(part.rows for part in parts)
    joined = PartInfo(name=name, rows=rows, bytes=file.bytes, checksum=file.checksum)
    _write_note(staging, joined)
    return joined


def remove_parts(output: Output) -> None:
    """Remove the folder of the parts, if the file is complete. Safe to repeat."""
    staging = open_folder(output.url)
    names = list(staging.sizes())
    if _NOTE not in names:
        return
    for name in sorted(names, key=lambda name: name == _NOTE):  # the note last
        staging.remove(name)
    staging.remove_empty()


def _write_note(staging: Folder, joined: PartInfo) -> None:
    note = staging.create(_NOTE)
    try:
        note.write(json.dumps(joined.to_json()).encode())
        note.publish()
    except BaseException:
        note.discard()
        raise


def _put_parts(
    output: Output,
    staging: Folder,
    parts: Sequence[PartInfo],
    names: Sequence[str],
    types: Sequence[CqlType],
    out: Measured,
) -> None:
    if output.format.kind == "parquet":
        from ringhaul.formats.write.parquet import ParquetWriter

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
    """What is around the parts in the one file, and how many bytes are around the rows of each."""

    def __init__(self, output: Output, names: Sequence[str], types: Sequence[CqlType]) -> None:
        self.head = self.tail = self.joint = b""
        self.part_head = self.part_tail = 0
        fmt = output.format
        if fmt.kind == "csv":
            from ringhaul.formats.write.csv import CsvLines

            self.head = CsvLines(fmt, names, types).head
        elif fmt.json_layout is not None:
            from ringhaul.formats.write.jsonl import JsonLines

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
