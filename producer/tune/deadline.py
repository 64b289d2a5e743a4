"""A hard time limit for a command: an alarm that interrupts whatever it is waiting for."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from producer.text import count_text
from ringhaul.errors import UsageError

#: Share of the budget that is kept for cleaning up, and its bounds in seconds: a busy node takes
#: seconds to drop a table.
END_SHARE, END_MIN_S, END_MAX_S = 0.15, 4.0, 15.0
#: Pause between two alarms.
AGAIN_S = 0.5


class TimeOver(KeyboardInterrupt):
    """The time is over. It is raised like Ctrl-C, so that no code mistakes it for a failure, such
    as one of a user's transform."""


@contextmanager
def until(stops_s: float) -> Iterator[None]:
    """Raise `TimeOver` in the block, which runs in the main thread, at a time on the monotonic
    clock."""

    def over(number: int, frame: FrameType | None) -> None:
        raise TimeOver

    before = signal.signal(signal.SIGALRM, over)
    # A process inherits which signals are blocked.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM, signal.SIGINT})
    # Again and again: it may be raised where it is ignored, as in a `__del__`.
    signal.setitimer(signal.ITIMER_REAL, max(stops_s - time.monotonic(), 0.001), AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def stops_before(ends_s: float) -> float:
    """Return when trials have to stop, so that cleaning up ends by `ends_s`; on the same clock."""
    budget_s = ends_s - time.monotonic()
    return ends_s - min(max(budget_s * END_SHARE, END_MIN_S), END_MAX_S)


def too_short(trials: int) -> UsageError:
    """Return the error of a run that compared nothing."""
    return UsageError(
        f"the time was over before two settings could be compared, after "
        f"{count_text(trials, 'trial')}: give more with --budget"
    )
