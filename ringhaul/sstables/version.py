"""The versions of SSTables, and what differs between them.

| | nb | oa |
|---|---|---|
| nodes that read it | 4.0, 4.1, 5.0 | 5.0 with `storage_compatibility_mode` UPGRADING or NONE |
| the latest expiry | 2038-01-19 | 2106-02-07 |
| Data.db, Index.db: "not deleted" | i32 0x7fffffff, i64 -2^63 | one byte, 0x80 |
| Statistics.db: a time without a deletion | 0x7fffffff | 0xffffffff |
| Statistics.db: when tombstones can be dropped | f64 time, i64 count | i64 time, i32 count |
| Statistics.db: minimal and maximal clustering | bytes of each value | types, and two bounds |
| Statistics.db, at its end | | deletions of partitions, first and last key, share of tokens |

All else is equal: also the times of rows and cells, which were always differences. Seconds since
the epoch that were signed in nb are unsigned in oa. A partition that is deleted, which is never
written here, has i64 time, u32 seconds in oa, in the reverse order of nb.
Classes: `BigFormat.BigVersion`, `DeletionTime.Serializer` and `LegacySerializer`, `Cell`,
`StatsMetadata`, `TombstoneHistogram`.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from enum import StrEnum


class SSTableVersion(StrEnum):
    """A version of SSTables, as in the names of their files. Later versions are greater."""

    NB = "nb"
    OA = "oa"

    @property
    def not_deleted(self) -> bytes:
        """The bytes for a partition that is not deleted."""
        return b"\x80" if self is SSTableVersion.OA else struct.pack(">iq", 0x7FFFFFFF, -(2**63))

    @property
    def never_s(self) -> int:
        """The time of a deletion that never happens, as an unsigned i32."""
        return 0xFFFFFFFF if self is SSTableVersion.OA else 0x7FFFFFFF

    @property
    def expiry_s_max(self) -> int:
        """The last time at which a value can expire, in seconds since the epoch."""
        # The second last number of oa stands for an invalid time.
        return self.never_s - (2 if self is SSTableVersion.OA else 1)

    @property
    def last_day(self) -> str:
        """The day of `expiry_s_max`, in ISO 8601."""
        return datetime.fromtimestamp(self.expiry_s_max, UTC).date().isoformat()
