"""Check that a zip archive holds what its directory lists: nothing less, and nothing more.

A reader goes by the directory at the end of an archive. Members that it does not list, as after a
repair or in archives that were put one after the other, would be missing without a word.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Sequence

from ringhaul.errors import SourceCorrupt
from ringhaul.formats.zip_member import LOCAL_HEADER, LOCAL_MAGIC

_END_MAGIC = b"PK\5\6"
_END = struct.Struct("<4s4H2LH")
#: A comment of the archive may follow the end record.
_COMMENT_BYTES_MAX = 0xFFFF
#: A larger number of members is stored in another record.
_COUNT_MAX = 0xFFFF
#: Sizes and checksum of a member may follow it.
_DESCRIPTOR_BYTES_MAX = 24
#: Extra fields of a usual local header.
_EXTRA_BYTES = 64


def check_whole(
    file: io.RawIOBase, infos: Sequence[zipfile.ZipInfo], directory_at: int, path: str
) -> None:
    """Raise `SourceCorrupt` for an archive whose directory lists more or less than is there.

    `infos`: all members that the directory lists. `directory_at`: where the directory begins.
    """
    _check_end(file, len(infos), path)
    ordered = sorted(infos, key=lambda info: info.header_offset)
    if not ordered:
        return
    if ordered[0].header_offset >= LOCAL_HEADER.size and _read(file, 0, 4) == LOCAL_MAGIC:
        raise _unlisted(path, 0)
    ends = [info.header_offset for info in ordered[1:]] + [directory_at]
    for info, end in zip(ordered, ends, strict=True):
        least = info.header_offset + LOCAL_HEADER.size + len(info.filename) + info.compress_size
        if least > end:
            raise SourceCorrupt(
                f"{path}: its member {info.filename!r} is cut short: the directory says "
                f"{info.compress_size:,} bytes, and there are fewer"
            )
        if end - least <= _EXTRA_BYTES + _DESCRIPTOR_BYTES_MAX:
            continue
        header = _read(file, info.header_offset, LOCAL_HEADER.size)
        if len(header) < LOCAL_HEADER.size:
            continue  # reported when the member is read
        name_bytes, extra_bytes = LOCAL_HEADER.unpack(header)[-2:]
        content = info.header_offset + LOCAL_HEADER.size + name_bytes + extra_bytes
        behind = content + info.compress_size
        room = min(end - behind, _DESCRIPTOR_BYTES_MAX + len(LOCAL_MAGIC))
        at = _read(file, behind, room).find(LOCAL_MAGIC) if room > 0 else -1
        if at >= 0:
            raise _unlisted(path, behind + at)


def _unlisted(path: str, at: int) -> SourceCorrupt:
    return SourceCorrupt(
        f"{path}: a member at byte {at:,} is not in the archive's directory: the archive was "
        "repaired, or several were put one after the other; unpack it, and load the files"
    )


def _check_end(file: io.RawIOBase, count: int, path: str) -> None:
    size_bytes = file.seek(0, io.SEEK_END)
    start = max(0, size_bytes - _END.size - _COMMENT_BYTES_MAX)
    tail = _read(file, start, size_bytes - start)
    at = tail.rfind(_END_MAGIC)
    if at < 0 or len(tail) - at < _END.size:
        return  # reported by zipfile
    *_, listed, _, _, comment_bytes = _END.unpack_from(tail, at)
    if listed != _COUNT_MAX and listed != count & _COUNT_MAX:
        raise SourceCorrupt(
            f"{path}: its directory lists {count:,} members, and says that there are {listed:,}: "
            "the archive is damaged"
        )
    behind = tail[at + _END.size + comment_bytes :].strip(b"\0")
    if behind:
        raise SourceCorrupt(
            f"{path}: {len(behind):,} bytes follow the end of the archive: several files were put "
            "one after the other, or it is damaged; unpack it, and load the files"
        )


def _read(file: io.RawIOBase, at: int, size: int) -> bytes:
    file.seek(at)
    data = b""
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data
