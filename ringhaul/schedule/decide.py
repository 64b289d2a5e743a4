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
    #: The first of the due times before it that get no run, else None.
    missed_from_ms: int | None = None


class PassOver(NamedTuple):
    """Settle all due times up to this one without a run."""

    due_ms: int
    reason: str
    #: The first of them, where there are several.
    missed_from_ms: int | None = None


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

    def first_since(ms: int) -> int:
        found = timing.due_after(max(settled_ms, ms - 1))
        return last if found is None else min(found, last)

    missed = first_since(now_ms - LOOK_BACK_MS)
    missed_before_last = missed if missed < last else None
    late_max_ms = schedule.late_max_s * 1000
    if late_max_ms and last < now_ms - late_max_ms:
        reason = "too late: it could not start within late_max"
        return PassOver(last, reason, missed_before_last)
    first = first_since(now_ms - late_max_ms) if late_max_ms else missed
    if busy_since_ms is not None:
        # One that was missed before that run began has its turn after it, and so have those behind
        # it: what is settled is one number.
        if schedule.overlap is Overlap.SKIP and first > busy_since_ms:
            return PassOver(last, "the run before it was not over", missed_before_last)
        return None
    if not timing.in_window(now_ms):
        return None  # late, and it waits for the window
    begun = first if schedule.catch_up is CatchUp.ALL else last
    return Begin(begun, missed_from_ms=missed if missed < begun else None)
