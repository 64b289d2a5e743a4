"""Summary.db: every 128th partition key with the place of its entry in Index.db.

`i32 interval | i32 entries | i64 bytes | i32 128 | i32 entries | offsets and entries | first key |
last key`. The offsets are little-endian i32 from their own start; an entry is a key and its place,
a little-endian i64; the first and last key have an i32 length before them. Class: `IndexSummary`,
at its full sampling level of 128.
"""

from __future__ import annotations

import struct
from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FULL_SAMPLING = 128


class Summary:
    """The file, entry by entry."""

    def __init__(self, interval: int) -> None:
        """`interval`: partitions per entry; the first partition has an entry."""
        self._interval = interval
        self._entries = bytearray()
        self._sizes = array("q")
        self.last_key = b""
        self.first_key = b""
        self.partitions = 0

    def add(self, keys: NDArray[Any], offsets: NDArray[Any], places: NDArray[np.int64]) -> None:
        """Add partitions in order, at least one: key i from `offsets[i]`, its entry in Index.db
        from `places[i]`."""

        def key(partition: int) -> bytes:
            return bytes(keys[offsets[partition] : offsets[partition + 1]].tobytes())

        count = len(offsets) - 1
        for partition in range(-self.partitions % self._interval, count, self._interval):
            entry = key(partition) + struct.pack("<q", places[partition])
            self._entries += entry
            self._sizes.append(len(entry))
        if not self.partitions:
            self.first_key = key(0)
        self.last_key = key(count - 1)
        self.partitions += count

    def finish(self) -> bytes:
        """Return the file."""
        count = len(self._sizes)
        offsets = np.cumsum([4 * count, *self._sizes][:-1])
        body = offsets.astype("<i4").tobytes() + self._entries
        return b"".join(
            [
                struct.pack(">iiqii", self._interval, count, len(body), _FULL_SAMPLING, count),
                body,
                *(struct.pack(">i", len(key)) + key for key in (self.first_key, self.last_key)),
            ]
        )
