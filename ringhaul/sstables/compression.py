"""CompressionInfo.db, and Data.db as compressed chunks.

`UTF compressor | i32 options (0) | i32 chunk bytes | i32 maximum compressed bytes | i64 bytes of
data | i32 chunks | i64 offsets`. A chunk in Data.db is its length (little-endian i32), an LZ4 block
and the CRC32 of both. Classes: `CompressionMetadata.Writer`, `CompressedSequentialWriter`,
`LZ4Compressor`.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from typing import IO

import numpy as np
import pyarrow as pa

from ringhaul.sstables.vints import with_short_length

#: Chunks that are compressed before they are written; more would take memory and save no time.
_CHUNKS_AT_ONCE = 64
#: Chunks are stored compressed however large they get.
_NO_MAXIMUM = 0x7FFFFFFF


class DataWriter:
    """Writes Data.db piece by piece, in LZ4 chunks or as it is."""

    def __init__(self, file: IO[bytes], chunk_bytes: int) -> None:
        """`chunk_bytes`: bytes of data that are compressed together; 0: no compression."""
        self._file, self._chunk_bytes = file, chunk_bytes
        self._codec = pa.Codec("lz4_raw")
        self._begun = b""  #: beginning of a chunk that is not full
        self._offsets = array("q")
        self._data_bytes = 0
        self.bytes_count = 0  #: bytes written
        self.crc = 0  #: CRC32 of the bytes written

    def write(self, data: memoryview) -> None:
        """Write more data."""
        self._data_bytes += len(data)
        if not self._chunk_bytes:
            self._put([data])
            return
        start = 0
        if self._begun:
            start = self._chunk_bytes - len(self._begun)
            self._begun += bytes(data[:start])
            if len(self._begun) < self._chunk_bytes:
                return
            self._compress([memoryview(self._begun)])
        end = start + (len(data) - start) // self._chunk_bytes * self._chunk_bytes
        group = _CHUNKS_AT_ONCE * self._chunk_bytes
        for first in range(start, end, group):
            last = min(first + group, end)
            self._compress(
                [data[at : at + self._chunk_bytes] for at in range(first, last, self._chunk_bytes)]
            )
        self._begun = bytes(data[end:])

    def finish(self) -> None:
        """Write the last chunk."""
        if self._begun:
            self._compress([memoryview(self._begun)])
            self._begun = b""

    @property
    def ratio(self) -> float:
        """Compressed bytes per byte of data; -1: not compressed."""
        return self.bytes_count / max(1, self._data_bytes) if self._chunk_bytes else -1.0

    def info_bytes(self) -> bytes:
        """Return CompressionInfo.db."""
        info = with_short_length(b"LZ4Compressor") + struct.pack(
            ">iiiqi", 0, self._chunk_bytes, _NO_MAXIMUM, self._data_bytes, len(self._offsets)
        )
        return info + np.array(self._offsets, ">i8").tobytes()

    def _compress(self, chunks: list[memoryview]) -> None:
        pieces: list[bytes] = []
        at = self.bytes_count
        for chunk in chunks:
            packed = struct.pack("<i", len(chunk)) + self._codec.compress(chunk, asbytes=True)
            self._offsets.append(at)
            pieces += [packed, struct.pack(">I", zlib.crc32(packed))]
            at += len(packed) + 4
        self._put([b"".join(pieces)])

    def _put(self, pieces: list[bytes] | list[memoryview]) -> None:
        for piece in pieces:
            self._file.write(piece)
            self.crc = zlib.crc32(piece, self.crc)
            self.bytes_count += len(piece)
