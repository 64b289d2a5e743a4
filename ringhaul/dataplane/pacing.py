"""Keep a unit within the rate limits of its job: how much to send at once, and when.

The limits apply to the job across all its workers; the code that runs the unit passes them in as a
`Throttle`. They may change whenever the unit's `tick` is called, so waits call it often.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

#: Stands for "no limit": larger than any real value.
BOUNDLESS = 1 << 60
#: How often `tick` is called during a wait.
TICK_S = 0.25


class Throttle(Protocol):
    """The current limits, shared by all units of the job except for `requests_max`."""

    @property
    def paced(self) -> bool:
        """Whether rows or bytes are limited; if not, `pay` is not needed."""

    @property
    def rows_at_once(self) -> int:
        """Most rows to send or read together, so that all workers get their turn."""

    @property
    def bytes_at_once(self) -> int:
        """Most bytes to send or read together."""

    @property
    def requests_max(self) -> int:
        """Most unanswered requests of this unit."""

    def pay(self, rows: int, bytes_count: int) -> None:
        """Take rows and bytes off the budget."""

    def wait_s(self) -> float:
        """Return the seconds until paid work may go (below 0: now). Changes with the limits."""

    def waited(self, seconds: float) -> None:
        """Called after a wait for a limit, so that it is not counted as the unit's time."""


class Unthrottled:
    """No limits."""

    paced = False
    rows_at_once = bytes_at_once = requests_max = BOUNDLESS

    def pay(self, rows: int, bytes_count: int) -> None:
        pass

    def wait_s(self) -> float:
        return 0.0

    def waited(self, seconds: float) -> None:
        pass


UNTHROTTLED = Unthrottled()


class Leave(NamedTuple):
    """The rows and requests that one unit may send now."""

    rows: int  #: rows to send or request together before calling `leave` again
    requests: int  #: requests that may be unanswered


#: The leave of an unlimited job.
FREE = Leave(BOUNDLESS, BOUNDLESS)


def free() -> Leave:
    """Return a leave without limits."""
    return FREE


class Pacing:
    """Applies the limits to one unit."""

    def __init__(self, throttle: Throttle, tick: Callable[[], None]) -> None:
        """`tick` is called while the unit waits; it may raise to stop the wait."""
        self._throttle, self._tick = throttle, tick
        self._row_bytes = 1.0

    def leave(self) -> Leave:
        """Return what may be sent now, assuming rows as long as those last paid for."""
        throttle = self._throttle
        if not throttle.paced:
            return Leave(BOUNDLESS, throttle.requests_max)
        rows = min(throttle.rows_at_once, int(throttle.bytes_at_once / self._row_bytes))
        return Leave(max(1, rows), throttle.requests_max)

    def spend(self, bytes_max: int) -> int:
        """Pay for as many of some bytes as may go at once, wait until they may be sent, and return
        their number."""
        count = min(bytes_max, self._throttle.bytes_at_once)
        self.pay(0, count)
        return count

    def pay(self, rows: int, bytes_count: int) -> None:
        """Pay for rows and bytes, and wait until they may be sent."""
        throttle = self._throttle
        if not throttle.paced:
            return
        if rows and bytes_count:
            self._row_bytes = max(1.0, bytes_count / rows)
        throttle.pay(rows, bytes_count)
        while (left_s := throttle.wait_s()) > 0:
            began_s = time.monotonic()
            time.sleep(min(left_s, TICK_S))
            throttle.waited(time.monotonic() - began_s)
            self._tick()
