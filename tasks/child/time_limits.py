"""How long a unit may be at work: until it is asked to end, and until its process is killed.

Celery's own limits count from a task's beginning, so that a unit which waits for its job's pace
would be ended for no fault of its own, as often as it is tried (docs/adr/0014). These leave waits
out.

The last resort is a thread of the interpreter's own (`faulthandler`), which needs no lock that a
unit can hold: it writes down where each thread of the process was, and ends the process.
"""

from __future__ import annotations

import faulthandler
import time
from collections.abc import Callable

from ringhaul.errors import Transient

#: To whom the last words go: the log of the worker.
STDERR_FD = 2


class UnitTooLong(Transient):
    """The unit has worked for longer than it may."""


class TimeLimits:
    """The limits of one unit, from entering to leaving; `look` is to be called often meanwhile.

    A unit that calls no more is killed once it would have worked for `hard_s`.
    """

    def __init__(self, soft_s: float, hard_s: float, waited_s: Callable[[], float]) -> None:
        """`waited_s`: how long this process has waited for the pace of jobs, a sum that grows."""
        self._soft_s, self._hard_s, self._waited_s = soft_s, hard_s, waited_s
        self._began_s = self._looked_s = time.monotonic()
        self._waited_seen_s = waited_s()
        self._held_s = 0.0  #: Of the time since the beginning: waits.

    def __enter__(self) -> TimeLimits:
        self._arm(self._hard_s)
        return self

    def __exit__(self, *_: object) -> None:
        faulthandler.cancel_dump_traceback_later()

    def look(self, *, held: bool = False) -> None:
        """Raise `UnitTooLong` if the unit has worked for too long.

        `held`: few of its requests may be under way, so that all since the last look was a wait.
        """
        now_s, waited_s = time.monotonic(), self._waited_s()
        waited_now_s = waited_s - self._waited_seen_s
        if held:
            waited_now_s = now_s - self._looked_s
        self._looked_s, self._waited_seen_s = now_s, waited_s
        self._held_s += waited_now_s
        worked_s = now_s - self._began_s - self._held_s
        if worked_s > self._soft_s:
            raise UnitTooLong(
                f"the unit worked for {worked_s:,.0f} s, waits for its job's pace not counted, and "
                f"may for {self._soft_s:,.0f} s: make units of a load smaller by --unit-size (a "
                "compressed file is one unit: split it), or raise worker.time_limit_soft_s and "
                "worker.time_limit_hard_s"
            )
        if waited_now_s:
            self._arm(self._hard_s - worked_s)

    def _arm(self, left_s: float) -> None:
        faulthandler.dump_traceback_later(left_s, exit=True, file=STDERR_FD)
