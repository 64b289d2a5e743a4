"""What to do about the due times of a schedule that have come.

Nothing is stored of due times to come: they follow from the timing. The ledger holds one number,
the due time up to which everything is settled (`settled_ms`), and moves it forward for one beat
only.
"""

from typing import NamedTuple

from ringhaul.schedule.schedules import CatchUp, Overlap, Schedule
from ringhaul.schedule.timing import LOOK_BACK_MS


class Begin(NamedTuple):
    """Start the run of this due time; those before it are settled with it."""

    due_ms: int
    #: The first of several due times of which only `due_ms` is made up for, else None.
    missed_from_ms: int | None = None


class PassOver(NamedTuple):
    """Settle all due times up to this one without a run."""

    due_ms: int
    reason: str


def decide(
    schedule: Schedule, *, settled_ms: int, now_ms: int, busy_since_ms: int | None
) -> Begin | PassOver | None:
    """What is to be done now; None: nothing.

    `busy_since_ms`: when the run of the schedule began that is not over; None: there is none.
    """
    timing = schedule.timing
    last = timing.due_last(settled_ms, now_ms)
    if last is None:
        return None
    late_max_ms = schedule.late_max_s * 1000
    if late_max_ms and last < now_ms - late_max_ms:
        return PassOver(last, "too late: it could not start within late_max")
    reach_ms = late_max_ms or LOOK_BACK_MS
    first = timing.due_after(max(settled_ms, now_ms - reach_ms - 1))
    if first is None or first > last:
        first = last
    if busy_since_ms is not None:
        # One that was missed before that run began has its turn after it, and so have those behind
        # it: what is settled is one number.
        if schedule.overlap is Overlap.SKIP and first > busy_since_ms:
            return PassOver(last, "the run before it was not over")
        return None
    if not timing.in_window(now_ms):
        return None  # late, and it waits for the window
    if first == last:
        return Begin(last)
    if schedule.catch_up is CatchUp.ALL:
        return Begin(first)
    return Begin(last, missed_from_ms=first)
