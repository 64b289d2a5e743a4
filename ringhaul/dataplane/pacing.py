"""Keeping a unit to the pace of its job: what may be sent at once, and when.

The limits are the job's, over all its workers; whoever runs the unit lends them as a `Throttle`.
They may change whenever the unit's `tick` is called, so what waits for them calls it often.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

#: More than anything has.
BOUNDLESS = 1 << 60
#: How often `tick` is called in a wait.
TICK_S = 0.25


class Throttle(Protocol):
    """The limits that hold now, for all units of the job together but for `requests_max`."""

    @property
    def paced(self) -> bool:
        """Rows or bytes have a limit; else there is nothing to pay."""

    @property
    def rows_at_once(self) -> int:
        """Rows that are sent or read together at most, so that all workers have their turn."""

    @property
    def bytes_at_once(self) -> int:
        """The same in bytes."""

    @property
    def requests_max(self) -> int:
        """Requests of this unit that may be without an answer."""

    def pay(self, rows: int, bytes_count: int) -> None:
        """Pay for rows and bytes."""

    def wait_s(self) -> float:
        """Seconds until what was paid for may go; changes with the limits. Below 0: now."""

    def waited(self, seconds: float) -> None:
        """Hear of a wait for the limits: it is no work of the unit's."""


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
    """What one unit may do now."""

    rows: int  #: to be sent or asked for together, before leave is asked for again
    requests: int  #: without an answer


#: Where nothing is limited.
FREE = Leave(BOUNDLESS, BOUNDLESS)


def free() -> Leave:
    """Leave without limits."""
    return FREE


class Pacing:
    """One unit's way to keep the pace."""

    def __init__(self, throttle: Throttle, tick: Callable[[], None]) -> None:
        """`tick` is called while the unit waits; it may raise to stop it."""
        self._throttle, self._tick = throttle, tick
        self._row_bytes = 1.0

    def leave(self) -> Leave:
        """What may be sent now. Rows are taken to be as long as those that were paid for last."""
        throttle = self._throttle
        if not throttle.paced:
            return Leave(BOUNDLESS, throttle.requests_max)
        rows = min(throttle.rows_at_once, int(throttle.bytes_at_once / self._row_bytes))
        return Leave(max(1, rows), throttle.requests_max)

    def pay(self, rows: int, bytes_count: int) -> None:
        """Pay, and wait until it is paid for."""
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
