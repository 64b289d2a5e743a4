"""Time limits of a unit: a soft limit, which raises, and a hard limit, which kills its process.

Celery's own limits count from the start of a task, so a unit that only waits for its job's rate
limit would be ended without fault, at every attempt (docs/adr/0014). These limits exclude waits.

The hard limit uses the interpreter's watchdog thread (`faulthandler`), which needs no lock that a
unit can hold: it writes a traceback of every thread and exits the process.
"""

from __future__ import annotations

import faulthandler
import time
from collections.abc import Callable

from ringhaul.errors import Transient

#: Where the watchdog writes tracebacks: the log of the worker.
STDERR_FD = 2


class UnitTooLong(Transient):
    """The unit has exceeded its soft time limit."""


class TimeLimits:
    """The limits of one unit, as a context manager; call `look` often inside it.

    A unit that stops calling `look` is killed once it has worked for `hard_s`.
    """

    def __init__(self, soft_s: float, hard_s: float, waited_s: Callable[[], float]) -> None:
        """`waited_s` returns how long this process has waited for rate limits, as a growing sum."""
        self._soft_s, self._hard_s, self._waited_s = soft_s, hard_s, waited_s
        self._began_s = self._looked_s = time.monotonic()
        self._waited_seen_s = waited_s()
        self._held_s = 0.0  #: Waits since the start

    def __enter__(self) -> TimeLimits:
        self._arm(self._hard_s)
        return self

    def __exit__(self, *_: object) -> None:
        faulthandler.cancel_dump_traceback_later()

    def look(self, *, held: bool = False) -> None:
        """Raise `UnitTooLong` if the unit has worked for too long.

        `held`: the job limits its requests in flight; all time since the last look is a wait.
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
                f"the unit worked for {worked_s:,.0f} s, not counting waits for its job's rate "
                f"limits; the limit is {self._soft_s:,.0f} s. Make units of a load smaller with "
                "--unit-size (a compressed file is one unit: split it), or raise "
                "worker.time_limit_soft_s and worker.time_limit_hard_s"
            )
        if waited_now_s:
            self._arm(self._hard_s - worked_s)

    def _arm(self, left_s: float) -> None:
        faulthandler.dump_traceback_later(left_s, exit=True, file=STDERR_FD)
