"""Whole numbers of 1 to 9 bytes, as Cassandra writes lengths in vectors and parts of durations.

The number of ones that lead the first byte is the number of bytes that follow it; what is left of
the first byte and those bytes are the number, big-endian.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.cql.column import TextColumn

_BYTES_MAX = 9
#: Bytes that follow the first -> the ones that lead it.
_PREFIXES = np.array([(0xFF00 >> extra) & 0xFF for extra in range(_BYTES_MAX)], np.uint8)
#: Numbers from this one on need one more byte after the first, and so on; 8 hold any number.
_STEPS = tuple(np.uint64(1 << (7 * extra)) for extra in range(1, _BYTES_MAX))

Numbers = NDArray[Any]


def unsigned_vints(values: Numbers) -> pa.BinaryArray:
    """Each number (uint64) as its bytes."""
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
    """Each number as its bytes: 0, -1, 1, -2 ... are the unsigned 0, 1, 2, 3 ..."""
    values = values.astype(np.int64)
    return unsigned_vints(((values << 1) ^ (values >> 63)).view(np.uint64))
