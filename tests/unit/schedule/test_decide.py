"""What becomes of due times that have come: the table of overlap, catch-up, lateness and
windows."""

from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from ringhaul.schedule.decide import Begin, PassOver, decide
from ringhaul.schedule.schedules import CatchUp, Overlap, Schedule
from ringhaul.schedule.timing import Timing
from ringhaul.schedule.windows import Window

MINUTE = 60_000
#: 10:00:00 on some day, UTC.
TEN = 1_768_039_200_000


def schedule(window: str = "", **more: object) -> Schedule:
    """Due every 10 minutes."""
    timing = Timing(
        zone=ZoneInfo("UTC"), every_s=600, window=Window.parse(window) if window else None
    )
    found = Schedule(name="a", timing=timing, steps=(("count",),))
    return replace(found, **more)  # type: ignore[arg-type]


def decided(
    found: Schedule, *, settled: int, now: int, busy: bool = False
) -> Begin | PassOver | None:
    """Minutes before and after 10:00."""
    return decide(found, settled_ms=TEN + settled * MINUTE, now_ms=TEN + now * MINUTE, busy=busy)


def test_nothing_is_due() -> None:
    assert decided(schedule(), settled=0, now=9) is None
    assert decided(schedule(), settled=0, now=0) is None


def test_one_is_due() -> None:
    assert decided(schedule(), settled=0, now=10) == Begin(TEN + 10 * MINUTE)
    assert decided(schedule(), settled=0, now=19) == Begin(TEN + 10 * MINUTE)


def test_a_clock_that_went_back_starts_nothing_twice() -> None:
    assert decided(schedule(), settled=10, now=-30) is None


@pytest.mark.parametrize("overlap", Overlap)
def test_of_several_that_were_missed_the_latest_runs_or_each(overlap: Overlap) -> None:
    found = schedule(overlap=overlap)
    assert decided(found, settled=0, now=35) == Begin(TEN + 30 * MINUTE, TEN + 10 * MINUTE)
    each = replace(found, catch_up=CatchUp.ALL)
    assert decided(each, settled=0, now=35) == Begin(TEN + 10 * MINUTE)
    assert decided(each, settled=10, now=35) == Begin(TEN + 20 * MINUTE)


def test_while_a_run_is_not_over_due_times_are_passed_over_or_wait() -> None:
    skips = schedule(overlap=Overlap.SKIP)
    passed = decided(skips, settled=0, now=21, busy=True)
    assert isinstance(passed, PassOver)
    assert passed.due_ms == TEN + 20 * MINUTE
    assert decided(schedule(overlap=Overlap.QUEUE), settled=0, now=21, busy=True) is None
    # and when the run is over, the one that waited begins
    assert decided(schedule(overlap=Overlap.QUEUE), settled=0, now=12) == Begin(TEN + 10 * MINUTE)


def test_one_that_is_too_late_is_passed_over() -> None:
    found = schedule(late_max_s=300)
    assert decided(found, settled=0, now=15) == Begin(TEN + 10 * MINUTE)
    passed = decided(found, settled=0, now=16)
    assert isinstance(passed, PassOver)
    assert (passed.due_ms, passed.reason.split(":")[0]) == (TEN + 10 * MINUTE, "too late")
    # queued behind a long run, too
    queued = schedule(late_max_s=300, overlap=Overlap.QUEUE)
    assert isinstance(decided(queued, settled=0, now=16, busy=True), PassOver)


def test_each_that_was_missed_but_not_those_that_are_too_late() -> None:
    found = schedule(late_max_s=1200, catch_up=CatchUp.ALL)
    assert decided(found, settled=0, now=45) == Begin(TEN + 30 * MINUTE)
    assert decided(found, settled=30, now=45) == Begin(TEN + 40 * MINUTE)


def test_a_late_start_waits_for_the_window() -> None:
    found = schedule(window="10:00-11:00")
    assert decided(found, settled=40, now=59) == Begin(TEN + 50 * MINUTE)
    assert decided(found, settled=40, now=60) is None
    assert decided(found, settled=40, now=600) is None
    # On the next day it begins, unless a newer one has come by then
    day = 24 * 60
    assert decided(found, settled=40, now=day) == Begin(TEN + day * MINUTE, TEN + 50 * MINUTE)
    each = replace(found, catch_up=CatchUp.ALL)
    assert decided(each, settled=40, now=day) == Begin(TEN + 50 * MINUTE)


def test_what_is_older_than_a_month_is_forgotten() -> None:
    found = schedule(catch_up=CatchUp.ALL)
    month = 31 * 24 * 60
    assert decided(found, settled=0, now=month + 60) == Begin(TEN + 60 * MINUTE)
