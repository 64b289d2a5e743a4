"""Compressed files, read as what is in them."""

import bz2
import gzip
import io
import lzma
import shlex
import zlib
from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from ringhaul.errors import SourceCorrupt

#: Compressed bytes read at a time.
_CHUNK_BYTES = 128 * 1024


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Decompressor(Protocol):
    """One of bz2 or lzma."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Streams:
    """Compressed streams one after the other, as `cat a.bz2 b.bz2` and pbzip2 make them.

    `BZ2File` and `LZMAFile` take a stream behind the first whose beginning is damaged for the end
    of the file, and say nothing: its records would be missing.
    """

    def __init__(
        self, file: io.BufferedReader, new: Callable[[], _Decompressor], padding: bytes = b""
    ) -> None:
        """`padding`: bytes that may stand between streams and behind them."""
        self._file, self._new, self._padding = file, new, padding
        self._stream = new()

    def read(self, size: int, /) -> bytes:
        found = b""
        while size > 0 and not found:
            if self._stream.eof:
                data = self._next_stream()
                if not data:
                    break
                self._stream = self._new()
            else:
                data = self._file.read(_CHUNK_BYTES) if self._stream.needs_input else b""
                if self._stream.needs_input and not data:
                    raise EOFError("it ends within a stream")
            found = self._stream.decompress(data, size)
        return found

    def _next_stream(self) -> bytes:
        """The first bytes of the stream behind this one; none if there is none."""
        data = self._stream.unused_data.lstrip(self._padding)
        while not data and (more := self._file.read(_CHUNK_BYTES)):
            data = more.lstrip(self._padding)
        return data


#: Suffix -> what opens such a file.
DECOMPRESSORS: dict[str, Callable[[io.BufferedReader], _Readable]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": lambda file: _Streams(file, bz2.BZ2Decompressor),
    ".xz": lambda file: _Streams(file, lzma.LZMADecompressor, padding=b"\0"),
    ".zst": lambda file: pa.CompressedInputStream(file, "zstd"),
}
#: How the library says that what comes is no gzip.
_NO_GZIP = "Not a gzipped file"
_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException)


class Decompressed:
    """A stream that tells of a broken archive in words.

    `compression`: a key of `DECOMPRESSORS`. `path` is for the words.
    """

    def __init__(self, file: io.RawIOBase, compression: str, path: str) -> None:
        self.path = path
        self.compression = compression
        self.inner = DECOMPRESSORS[compression](io.BufferedReader(file))
        self._read_bytes = 0

    def read(self, size: int, /) -> bytes:
        try:
            data = bytes(self.inner.read(size))
            self._read_bytes += len(data)
            return data
        except gzip.BadGzipFile as error:
            # The same type tells of a wrong check sum, and then the text is not whole.
            if not self._read_bytes or not str(error).startswith(_NO_GZIP):
                raise self._corrupt(error) from error
            # gunzip leaves such bytes out and warns. Records that were meant would be lost, so
            # whoever knows the file decides.
            raise SourceCorrupt(
                f"{self.path}: behind the compressed text, which is whole, comes something that is "
                f"no gzip ({error}); if it is of no use, "
                f"`gzip -dc {shlex.quote(self.path)}` gives what stands before it"
            ) from error
        except _ERRORS as error:
            raise self._corrupt(error) from error

    def _corrupt(self, error: BaseException) -> SourceCorrupt:
        return SourceCorrupt(
            f"{self.path}: cannot be decompressed as {self.compression}: {error}; it is cut "
            "short, damaged, or misnamed"
        )
