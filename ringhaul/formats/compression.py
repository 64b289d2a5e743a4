"""Compressed files, read as what is in them."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from ringhaul.errors import SourceCorrupt


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


#: Suffix -> what opens such a file.
DECOMPRESSORS: dict[str, Callable[[io.BufferedReader], _Readable]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": lambda file: pa.CompressedInputStream(file, "zstd"),
}
_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException)


class Decompressed:
    """A stream that tells of a broken archive in words.

    `compression`: a key of `DECOMPRESSORS`. `path` is for the words.
    """

    def __init__(self, file: io.RawIOBase, compression: str, path: str) -> None:
        self.path = path
        self.compression = compression
        self.inner = DECOMPRESSORS[compression](io.BufferedReader(file))

    def read(self, size: int, /) -> bytes:
        try:
            return bytes(self.inner.read(size))
        except _ERRORS as error:
            raise SourceCorrupt(
                f"{self.path}: cannot be decompressed as {self.compression}: {error}; it is cut "
                "short, damaged, or misnamed"
            ) from error
