"""Narrow an unreadable range down to the part at fault.

A range with a fault is cut in two and both halves are read: the half without the fault returns its
rows, the other is cut again, down to one token, which is nearly always one partition. That takes
some 60 requests for each partition at fault. A range that cannot be cut further is read again, at
every replica, before it counts as unreadable.

With `skip` such a range is skipped and the scan continues. Ranges at fault are then read after all
others, widest first: if thousands of partitions cannot be read, the budget of requests runs out
long before each is found, and the scan skips little more than the stretch that they are in.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ringhaul.scan.faults import ReadFault

#: Failed requests of one scan after which ranges are no longer cut. A read that meets 100,000
#: tombstones takes some 50 ms, so this limits a unit's narrowing to minutes. Around a corrupt chunk
#: of an SSTable even stretches without any partition fail: there no number of cuts narrows the
#: range to one partition.
FAILURES_MAX, UNKNOWN_FAILURES_MAX = 2000, 600
#: Without `skip` the job fails in any case; locating the fault is not worth more time.
NARROW_S = 10.0
#: A shorter page may hold fewer tombstones or bytes: the read is retried with this many times fewer
#: rows.
SHRINK = 8
#: Failed reads of an uncuttable range before it counts as unreadable, at least one per replica. An
#: unknown reason may pass: with pauses of 0.1, 0.2, ... s this allows about 3 s for the first such
#: range. Later ranges were cut from a range that failed as well.
CERTAIN_TRIES, UNKNOWN_TRIES, LATER_TRIES = 2, 6, 1


@dataclass
class Narrowing:
    """The limits of one scan's narrowing, and how much of them is used."""

    skip: bool
    failures: int = 0
    _until: float | None = None
    _confirmed: bool = False

    def failed(self) -> None:
        """Note a read that failed because of the data."""
        self.failures += 1
        if self._until is None:
            self._until = time.monotonic() + NARROW_S

    def may_cut(self, fault: ReadFault) -> bool:
        """Return whether a range with this fault may still be cut."""
        in_time = self.skip or self._until is None or time.monotonic() < self._until
        most = FAILURES_MAX if fault.certain else UNKNOWN_FAILURES_MAX
        return in_time and self.failures < most

    def is_unreadable(self, fault: ReadFault, tries: int, replicas: int) -> bool:
        """Return whether an uncuttable range has failed often enough to be given up."""
        if fault.certain:
            wanted = CERTAIN_TRIES
        else:
            wanted = LATER_TRIES if self._confirmed else UNKNOWN_TRIES
        if tries < max(wanted, replicas):
            return False
        self._confirmed = True
        return True
