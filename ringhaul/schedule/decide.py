"""Decide what to do about the due times of a schedule that have passed.

Future due times are not stored: they follow from the timing. The ledger holds one number, the due
time up to which everything is settled (`settled_ms`), and lets only one beat move it forward.
"""

from typing import NamedTuple

from ringhaul.schedule.schedules import CatchUp, Overlap, Schedule
from ringhaul.schedule.timing import LOOK_BACK_MS


class Begin(NamedTuple):
    """Start the run of this due time; earlier due times are settled with it."""

    due_ms: int
    #: The first of the earlier due times that get no run, if any.
    missed_from_ms: int | None = None


class Skip(NamedTuple):
    """Settle all due times up to `due_ms` without a run."""

    due_ms: int
    reason: str
    #: The first of these due times, if there are several.
    missed_from_ms: int | None = None


def decide(
    schedule: Schedule, *, settled_ms: int, now_ms: int, busy_since_ms: int | None
) -> Begin | Skip | None:
    """Return what to do now; None: nothing.

    `busy_since_ms`: when the schedule's unfinished run began; None if no run is unfinished.
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
        return Skip(last, reason, missed_before_last)
    first = first_since(now_ms - late_max_ms) if late_max_ms else missed
    if busy_since_ms is not None:
        # A due time missed before that run began gets its run afterwards, and so do all after it:
        # settled due times are stored as a single number.
        if schedule.overlap is Overlap.SKIP and first > busy_since_ms:
            return Skip(last, "the previous run had not ended", missed_before_last)
        return None
    if not timing.in_window(now_ms):
        return None  # late: it waits for the window
    due_ms = first if schedule.catch_up is CatchUp.ALL else last
    return Begin(due_ms, missed_from_ms=missed if missed < due_ms else None)
