"""Summary.db: every 128th partition key with the place of its entry in Index.db.

`i32 interval | i32 entries | i64 bytes | i32 128 | i32 entries | offsets and entries | first key |
last key`. The offsets are little-endian i32 from their own start; an entry is a key and its place,
a little-endian i64; the first and last key have an i32 length before them. Class: `IndexSummary`,
at its full sampling level of 128.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

_FULL_SAMPLING = 128


def summary_bytes(
    interval: int, sampled: Sequence[tuple[bytes, int]], first_key: bytes, last_key: bytes
) -> bytes:
    """Return the file. `sampled`: every `interval`th key, from the first on, with its place."""
    entries = [key + struct.pack("<q", place) for key, place in sampled]
    offsets = np.cumsum([4 * len(entries), *map(len, entries)][:-1])
    body = offsets.astype("<i4").tobytes() + b"".join(entries)
    count = len(entries)
    return b"".join(
        [
            struct.pack(">iiqii", interval, count, len(body), _FULL_SAMPLING, count),
            body,
            *(struct.pack(">i", len(key)) + key for key in (first_key, last_key)),
        ]
    )
