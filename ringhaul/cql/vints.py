"""Variable-length integers (vints) of 1 to 9 bytes, which Cassandra uses for lengths in vectors and
for the parts of durations.

The number of leading ones in the first byte is the number of bytes that follow it; the remaining
bits of the first byte and those bytes are the number, big-endian.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.cql.column import TextColumn

_BYTES_MAX = 9
#: Number of bytes after the first -> the leading ones of the first byte.
_PREFIXES = np.array([(0xFF00 >> extra) & 0xFF for extra in range(_BYTES_MAX)], np.uint8)
#: The least numbers that need 1, 2, ... bytes after the first; 8 hold any number.
_STEPS = tuple(np.uint64(1 << (7 * extra)) for extra in range(1, _BYTES_MAX))

Numbers = NDArray[Any]


def unsigned_vints(values: Numbers) -> pa.BinaryArray:
    """Encode each number (uint64) as a vint."""
    values = values.astype(np.uint64)
    extra = np.zeros(len(values), np.uint8)
    for step in _STEPS:
        extra += values >= step
    wire = np.zeros((len(values), _BYTES_MAX), np.uint8)
    wire[:, 1:] = values.astype(">u8").view(np.uint8).reshape(-1, 8)
    first = _BYTES_MAX - 1 - extra
    wire[np.arange(len(values)), first] |= _PREFIXES[extra]
    kept = np.arange(_BYTES_MAX, dtype=np.uint8) >= first[:, None]
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(extra.astype(np.int32) + 1, out=offsets[1:])
    return TextColumn(offsets, wire[kept]).array()


def signed_vints(values: NDArray[np.int64]) -> pa.BinaryArray:
    """Encode each number as a zigzag vint: 0, -1, 1, -2 ... become the unsigned 0, 1, 2, 3 ..."""
    values = values.astype(np.int64)
    return unsigned_vints(((values << 1) ^ (values >> 63)).view(np.uint64))
