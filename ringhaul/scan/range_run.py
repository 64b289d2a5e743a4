"""One token range of a scan: what was requested, what has arrived, what failed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from cassandra.pool import Host

from ringhaul.scan.cursor import token_reached
from ringhaul.scan.pages import Page
from ringhaul.scan.ranges import TokenRange, split_range
from ringhaul.scan.sizing import Brake


class Arrival(NamedTuple):
    """A page that has arrived."""

    page: Page
    latency_us: int


@dataclass(eq=False)
class RangeRun:
    """One range, from its first request to its last page."""

    range: TokenRange
    state: bytes | None = None  #: paging state after the last page handed out
    next_state: bytes | None = None  #: paging state after the last page received
    ended: bool = False  #: its last page has arrived
    pages: deque[Arrival] = field(default_factory=deque)
    error: BaseException | None = None
    request: int | None = None  #: number of the unanswered request
    sent_at: float = 0.0
    hosts: tuple[Host, ...] = ()
    tries: int = 0  #: failed tries since the last page
    faults: int = 0  #: failed tries among `tries` that the data caused
    confirmed: int = 0  #: failed tries among `faults` on a range that cannot be cut further
    suspect: bool = False  #: cut from a range that could not be read
    rows: int = 0  #: rows requested last
    brake: Brake = field(default_factory=Brake)
    due: float = 0.0  #: no request before this time

    def halves(self) -> tuple[TokenRange, TokenRange] | None:
        """Return the rest of the range, cut in two; None if it cannot be cut.

        Everything received so far belongs to the first half: the cut is not before the partition
        that the paging state points into. If that is unknown, or if the last partition is what
        takes so long, the run stays whole.
        """
        after = None
        if self.next_state is not None:
            after = token_reached(self.next_state)
            if after is None or not self.range.lo < after <= self.range.hi:
                return None
        try:
            return split_range(self.range, after)
        except ValueError:
            return None


class Todo(NamedTuple):
    """A range that is not started yet."""

    range: TokenRange
    state: bytes | None = None
    suspect: bool = False
