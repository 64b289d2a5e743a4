"""Read the content of one member of a zip archive, in bounded memory, and check it.

A member that is only stored is read at any position, like a file. A compressed member is a stream.
Nothing is written to a disk, and a member's name is only a name.
"""

from __future__ import annotations

import bz2
import io
import struct
import zlib
from abc import abstractmethod
from typing import Any, NamedTuple, Protocol

from ringhaul.errors import SourceCorrupt

STORED, DEFLATED, BZIP2 = 0, 8, 12
#: Compressed bytes read at a time.
_CHUNK_BYTES = 128 * 1024
LOCAL_HEADER = struct.Struct("<4s5HIIIHH")
LOCAL_MAGIC = b"PK\3\4"
#: A local header with the longest name and the longest extra fields.
LOCAL_HEADER_BYTES_MAX = LOCAL_HEADER.size + 2 * 0xFFFF


class ZipMember(NamedTuple):
    """Where a member is in its archive, as the archive's directory says."""

    name: str
    header_offset: int  #: offset of its local header in the archive
    stored_bytes: int  #: compressed, without the header
    size_bytes: int  #: bytes of its content
    method: int  #: one of `STORED`, `DEFLATED`, `BZIP2`
    crc: int

    @property
    def end_max(self) -> int:
        """An offset in the archive after the end of the member."""
        return self.header_offset + LOCAL_HEADER_BYTES_MAX + self.stored_bytes


class _Decompressor(Protocol):
    """What zlib and bz2 have in common after `_Inflate`."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Inflate:
    """zlib's decompressor with the interface of bz2's."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(-zlib.MAX_WBITS)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        found = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        # A full buffer may hide more that is ready.
        self.needs_input = not self._inner.unconsumed_tail and len(found) < max_length
        return found


def open_member(file: io.RawIOBase, member: ZipMember, path: str) -> io.RawIOBase:
    """Open a member of the archive `file`, which is read at any position and closed with it.

    `path`: path of the member, for messages. Reading raises `SourceCorrupt` for content that is not
    what the directory says: cut short, longer, or with another checksum.
    """
    try:
        file.seek(member.header_offset)
        header = _read_exactly(file, LOCAL_HEADER.size)
        if len(header) < LOCAL_HEADER.size or not header.startswith(LOCAL_MAGIC):
            raise SourceCorrupt(
                f"{path}: the archive's directory leads to something else: it is damaged or changed"
            )
        _, _, _, method, _, _, _, _, _, name_bytes, extra_bytes = LOCAL_HEADER.unpack(header)
        if method != member.method:
            raise SourceCorrupt(
                f"{path}: is packed by method {method}, and by method {member.method} according to "
                "the archive's directory: it is damaged or changed"
            )
    except BaseException:
        file.close()
        raise
    begin = member.header_offset + len(header) + name_bytes + extra_bytes
    kind = _Stored if member.method == STORED else _Packed
    return kind(file, member, path, begin)


class _Member(io.RawIOBase):
    """What both kinds share: the archive, and the checksum of what is read from the beginning."""

    def __init__(self, file: io.RawIOBase, member: ZipMember, path: str, begin: int) -> None:
        self._file, self._member, self._path, self._begin = file, member, path, begin
        self._at = 0
        #: Checksum of the content before `_at`; None: some of it was not read.
        self._crc: int | None = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self._more(len(view))
        view[: len(data)] = data
        self._at += len(data)
        if self._crc is not None:
            self._crc = zlib.crc32(data, self._crc)
            if self._at == self._member.size_bytes and self._crc != self._member.crc:
                raise self._corrupt("its checksum is wrong")
        return len(data)

    @abstractmethod
    def _more(self, size: int) -> bytes:
        """Return up to `size` bytes of the content; none only at its end."""

    def _corrupt(self, why: str) -> SourceCorrupt:
        return SourceCorrupt(f"{self._path}: cannot be read from the archive: {why}")

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _Stored(_Member):
    """A member that is not compressed."""

    def __init__(self, file: io.RawIOBase, member: ZipMember, path: str, begin: int) -> None:
        super().__init__(file, member, path, begin)
        file.seek(begin)

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._member.size_bytes}
        at = base[whence] + offset
        if at != self._at:
            self._at = at
            self._crc = 0 if at == 0 else None
            self._file.seek(self._begin + at)
        return self._at

    def _more(self, size: int) -> bytes:
        left_bytes = max(0, self._member.size_bytes - self._at)
        data = self._file.read(min(size, left_bytes)) or b""
        if not data and left_bytes and size:
            raise self._corrupt("the archive ends within it")
        return data


class _Packed(_Member):
    """A compressed member."""

    def __init__(self, file: io.RawIOBase, member: ZipMember, path: str, begin: int) -> None:
        super().__init__(file, member, path, begin)
        self._stream: _Decompressor = (
            _Inflate() if member.method == DEFLATED else bz2.BZ2Decompressor()
        )
        self._left_bytes = member.stored_bytes
        file.seek(begin)

    def _more(self, size: int) -> bytes:
        found = b""
        try:
            while size and not found and not self._stream.eof:
                data = self._next() if self._stream.needs_input else b""
                found = self._stream.decompress(data, size)
        except (zlib.error, OSError, EOFError) as error:
            raise self._corrupt(f"{error}; it is damaged") from error
        if self._at + len(found) > self._member.size_bytes:
            raise self._corrupt(
                f"it has more than the {self._member.size_bytes:,} bytes that the archive's "
                "directory says, as a zip bomb does"
            )
        if size and not found and self._at < self._member.size_bytes:
            raise self._corrupt(
                f"it ends after {self._at:,} bytes, and the archive's directory says "
                f"{self._member.size_bytes:,}"
            )
        return found

    def _next(self) -> bytes:
        data = self._file.read(min(_CHUNK_BYTES, self._left_bytes)) or b""
        if not data:
            raise EOFError("the archive ends within it")
        self._left_bytes -= len(data)
        return data


def _read_exactly(file: io.RawIOBase, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data
