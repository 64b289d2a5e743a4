"""Read compressed files as their decompressed content."""

import bz2
import gzip
import io
import lzma
import shlex
import zlib
from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from ringhaul.errors import SourceCorrupt, UsageError
from ringhaul.formats.suffixes import UNREAD

#: Compressed bytes read at a time.
_CHUNK_BYTES = 128 * 1024


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Decompressor(Protocol):
    """A decompressor of bz2 or lzma."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Streams:
    """Concatenated compressed streams, as `cat a.bz2 b.bz2` and pbzip2 make them.

    `BZ2File` and `LZMAFile` silently take a later stream whose beginning is damaged for the end of
    the file: its records would be missing.
    """

    def __init__(
        self, file: io.BufferedReader, new: Callable[[], _Decompressor], padding: bytes = b""
    ) -> None:
        """`padding`: bytes that may stand between and after the streams."""
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
        """Return the first bytes of the next stream; empty at the end of the file."""
        data = self._stream.unused_data.lstrip(self._padding)
        while not data and (more := self._file.read(_CHUNK_BYTES)):
            data = more.lstrip(self._padding)
        return data


#: Suffix -> function that opens a file with this suffix.
DECOMPRESSORS: dict[str, Callable[[io.BufferedReader], _Readable]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": lambda file: _Streams(file, bz2.BZ2Decompressor),
    ".xz": lambda file: _Streams(file, lzma.LZMADecompressor, padding=b"\0"),
    ".lzma": lambda file: _Streams(file, lzma.LZMADecompressor),
    ".zst": lambda file: pa.CompressedInputStream(file, "zstd"),
    ".zstd": lambda file: pa.CompressedInputStream(file, "zstd"),
    ".lz4": lambda file: pa.CompressedInputStream(file, "lz4"),
    ".br": lambda file: pa.CompressedInputStream(file, "brotli"),
}
#: How the library's error begins if the data is not gzip.
_NO_GZIP = "Not a gzipped file"
_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException)


def check_compression(compression: str, path: str) -> None:
    """Raise `UsageError` for an unsupported compression. `path`: the file, for the message."""
    if compression in UNREAD:
        name, unpack = UNREAD[compression]
        raise UsageError(
            f"{path}: its name says that it is compressed by {name}, which is not supported: "
            f"unpack it, also in a pipe ({unpack} FILE | ringhaul ... -)"
        )


class Decompressed:
    """A decompressed stream that reports a broken archive in plain words.

    `compression`: a key of `DECOMPRESSORS`. `path`: the file, for messages. Raises `UsageError` for
    a compression in `UNREAD`, which jobs of older versions may have.
    """

    def __init__(self, file: io.RawIOBase, compression: str, path: str) -> None:
        check_compression(compression, path)
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
            # A wrong checksum raises the same type, and then the text is incomplete.
            if not self._read_bytes or not str(error).startswith(_NO_GZIP):
                raise self._corrupt(error) from error
            # gunzip skips such bytes with a warning. Intended records would be lost that way, so
            # the user has to decide.
            raise SourceCorrupt(
                f"{self.path}: the compressed text is complete, but bytes follow that are not gzip "
                f"({error}); if they are not needed, "
                f"`gzip -dc {shlex.quote(self.path)}` extracts the text before them"
            ) from error
        except _ERRORS as error:
            raise self._corrupt(error) from error

    def _corrupt(self, error: BaseException) -> SourceCorrupt:
        return SourceCorrupt(
            f"{self.path}: cannot be decompressed as {self.compression}: {error}; it is cut "
            "short, damaged, or misnamed"
        )
