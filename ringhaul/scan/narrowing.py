"""How a range that cannot be read is narrowed down to the part at fault. Pure, but for the clock.

A range with a fault is cut in two and both halves are read: the half without the fault gives its
rows, the other is cut again, down to one token, which is nearly always one partition. That takes
some 60 requests for each partition at fault. Where nothing more can be cut, the read is repeated,
at every replica, before the range counts as one that cannot be read.

With `skip` such a range is left out and the scan continues. Ranges at fault then wait behind all
others, widest first: where thousands of partitions cannot be read the budget of requests ends long
before each is found, and what is left out then is little more than the stretch they are in.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ringhaul.scan.faults import ReadFault

#: Requests of one scan that may fail before ranges are no longer cut. A read that meets 100,000
#: tombstones takes some 50 ms, so this bounds a unit's narrowing to minutes. Around a corrupt chunk
#: of an SSTable stretches without any partition fail, too: there no number of cuts ends at one.
FAILURES_MAX, UNKNOWN_FAILURES_MAX = 2000, 600
#: Without `skip` the job fails in any case: a place that is found later than this helps nobody.
NARROW_S = 10.0
#: A shorter page may hold fewer tombstones or bytes: it is tried with so many times fewer rows.
SHRINK = 8
#: Reads of what cannot be cut that have to fail before it counts as unreadable, at every replica
#: once at least. An unknown reason may pass: with pauses of 0.1, 0.2, ... s that is about 3 s for
#: the first such range. Those that follow were cut from one that failed as well.
CERTAIN_TRIES, UNKNOWN_TRIES, LATER_TRIES = 2, 6, 1


@dataclass
class Narrowing:
    """The bounds of one scan's narrowing, and what is used of them."""

    skip: bool
    failures: int = 0
    _until: float | None = None
    _confirmed: bool = False

    def failed(self) -> None:
        """A read failed for what the data are."""
        self.failures += 1
        if self._until is None:
            self._until = time.monotonic() + NARROW_S

    def may_cut(self, fault: ReadFault) -> bool:
        """Whether a range with this fault may still be cut."""
        in_time = self.skip or self._until is None or time.monotonic() < self._until
        most = FAILURES_MAX if fault.certain else UNKNOWN_FAILURES_MAX
        return in_time and self.failures < most

    def is_unreadable(self, fault: ReadFault, tries: int, replicas: int) -> bool:
        """Whether a range that cannot be cut was tried often enough to give it up."""
        if fault.certain:
            wanted = CERTAIN_TRIES
        else:
            wanted = LATER_TRIES if self._confirmed else UNKNOWN_TRIES
        if tries < max(wanted, replicas):
            return False
        self._confirmed = True
        return True
