"""CompressionInfo.db, and Data.db as compressed chunks.

`UTF compressor | i32 options (0) | i32 chunk bytes | i32 maximum compressed bytes | i64 bytes of
data | i32 chunks | i64 offsets`. A chunk in Data.db is its length (little-endian i32), an LZ4 block
and the CRC32 of both. Classes: `CompressionMetadata.Writer`, `CompressedSequentialWriter`,
`LZ4Compressor`.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.sstables.vints import with_short_length

#: Chunks are stored compressed however large they get.
_NO_MAXIMUM = 0x7FFFFFFF


class Compressed(NamedTuple):
    """Data.db, CompressionInfo.db, and compressed bytes by bytes."""

    data: bytes
    info: bytes
    ratio: float


def compress(data: NDArray[np.uint8], chunk_bytes: int) -> Compressed:
    """Return data as LZ4 chunks of `chunk_bytes`."""
    codec = pa.Codec("lz4_raw")
    view = memoryview(data.data)
    pieces: list[bytes] = []
    offsets = []
    at = 0
    for start in range(0, len(view), chunk_bytes):
        chunk = view[start : start + chunk_bytes]
        packed = struct.pack("<i", len(chunk)) + codec.compress(chunk, asbytes=True)
        offsets.append(at)
        pieces += [packed, struct.pack(">I", zlib.crc32(packed))]
        at += len(packed) + 4
    info = with_short_length(b"LZ4Compressor") + struct.pack(
        ">iiiqi", 0, chunk_bytes, _NO_MAXIMUM, len(view), len(offsets)
    )
    info += np.array(offsets, ">i8").tobytes()
    return Compressed(b"".join(pieces), info, at / max(1, len(view)))
