"""The interface of every write strategy.

A writer owns one unit's requests. `write` returns when the rows are on their way (it blocks while
the window is full), `flush` when every row was answered. A row counts as written only by the
server's answer to it. Rows it refuses go to `on_reject` one by one; time-outs, overload and lost
nodes are retried within a budget, after which `RequestFailed` gives the unit back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ringhaul.dataplane.base import RequestStats
from ringhaul.dataplane.pacing import Leave, free
from ringhaul.records.rows import EncodedRows
from ringhaul.streaming.allowance import unlimited


def nowhere(rows: EncodedRows, row: int) -> str:
    """Return no place: the default of `WriterHooks.place`."""
    return ""


@dataclass(frozen=True, kw_only=True)
class WriterHooks:
    """What a writer calls while it works."""

    #: Called at least once a second while the writer waits; may raise to stop the unit.
    tick: Callable[[], None]
    #: Called before rows are sent, with their number; blocks while the job's rate limit is used up.
    throttle: Callable[[int], None]
    #: (rows, row index, reason) of a row that the server refuses for its content.
    on_reject: Callable[[EncodedRows, int, str], None]
    #: How much may be sent together now, and be without an answer.
    leave: Callable[[], Leave] = free
    #: Called by writers that stream SSTables before bytes are sent, with their number: blocks while
    #: the limit on bytes is used up, and returns how many of them may go.
    spend: Callable[[int], int] = unlimited
    #: (rows, row index) -> place of its record in the input, for people; empty: not known.
    place: Callable[[EncodedRows, int], str] = nowhere
    #: The writer's counters: writers of one unit may share them.
    stats: RequestStats = field(default_factory=RequestStats)


class Writer(Protocol):
    """One unit's writes."""

    stats: RequestStats

    def write(self, rows: EncodedRows) -> None:
        """Send the rows; blocks while the window is full."""

    def flush(self) -> None:
        """Return when every row sent so far was answered."""

    def close(self) -> None:
        """End the unit, finished or not, so that nothing of it affects the next."""
