"""What is done at due times: the combinations of overlap, catch-up, lateness and
windows."""

from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from ringhaul.schedule.decide import Begin, Skip, decide
from ringhaul.schedule.runs import begin_step, end_step, new_run, try_again
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
    found: Schedule, *, settled: int, now: int, busy_since: int | None = None
) -> Begin | Skip | None:
    """Minutes before and after 10:00."""
    return decide(
        found,
        settled_ms=TEN + settled * MINUTE,
        now_ms=TEN + now * MINUTE,
        busy_since_ms=None if busy_since is None else TEN + busy_since * MINUTE,
    )


def test_no_time_is_due() -> None:
    assert decided(schedule(), settled=0, now=9) is None
    assert decided(schedule(), settled=0, now=0) is None


def test_one_time_is_due() -> None:
    assert decided(schedule(), settled=0, now=10) == Begin(TEN + 10 * MINUTE)
    assert decided(schedule(), settled=0, now=19) == Begin(TEN + 10 * MINUTE)


def test_a_clock_that_went_back_starts_nothing_twice() -> None:
    assert decided(schedule(), settled=10, now=-30) is None


@pytest.mark.parametrize("overlap", Overlap)
def test_after_several_missed_times_the_latest_runs_or_each(overlap: Overlap) -> None:
    found = schedule(overlap=overlap)
    assert decided(found, settled=0, now=35) == Begin(TEN + 30 * MINUTE, TEN + 10 * MINUTE)
    each = replace(found, catch_up=CatchUp.ALL)
    # Each run begins after the previous one; checks in between drop none
    for due in (10, 20, 30):
        assert decided(each, settled=due - 10, now=34 + due) == Begin(TEN + due * MINUTE)
        if due < 30:
            busy = decided(each, settled=due, now=35 + due, busy_since=34 + due)
            assert busy is None, "the next of them waits"


def test_a_time_during_a_run_waits_behind_missed_ones() -> None:
    each = schedule(catch_up=CatchUp.ALL)
    # Missed at 10, 20; the run of 10 began at 25 and is under way at 35
    assert decided(each, settled=10, now=35, busy_since=25) is None
    assert decided(each, settled=10, now=36) == Begin(TEN + 20 * MINUTE)
    assert decided(each, settled=20, now=37) == Begin(TEN + 30 * MINUTE)
    # The run of 30 began at 37: no missed time is left, and times during the run are skipped
    passed = decided(each, settled=30, now=41, busy_since=37)
    assert passed == Skip(TEN + 40 * MINUTE, "the previous run had not ended")
    # and a missed time that is too late by now is skipped
    limited = replace(each, late_max_s=600)
    assert isinstance(decided(limited, settled=10, now=35, busy_since=25), Skip)
    # A run started by hand skips no time that was missed before it
    latest = schedule()
    assert decided(latest, settled=0, now=25, busy_since=24) is None
    assert decided(latest, settled=0, now=26) == Begin(TEN + 20 * MINUTE, TEN + 10 * MINUTE)


def test_resuming_a_failed_run_skips_no_time_missed_before() -> None:
    skips = schedule(overlap=Overlap.SKIP)
    # Given a run that began at 10:00 and failed, and no beat after that
    run = new_run(skips, TEN, TEN)
    failed = end_step(begin_step(run, TEN), 3, TEN + 1, schedule=skips)
    # When it is resumed at 10:25
    again = try_again(failed, skips, TEN + 25 * MINUTE)
    assert again.started_ms is not None
    busy_since = (again.started_ms - TEN) // MINUTE
    # Then 10:10 and 10:20 wait for its end
    assert decided(skips, settled=0, now=26, busy_since=busy_since) is None
    assert decided(skips, settled=0, now=27) == Begin(TEN + 20 * MINUTE, TEN + 10 * MINUTE)


def test_due_times_during_a_run_are_skipped_or_wait() -> None:
    skips = schedule(overlap=Overlap.SKIP)
    passed = decided(skips, settled=0, now=21, busy_since=0)
    assert isinstance(passed, Skip)
    assert passed.due_ms == TEN + 20 * MINUTE
    assert decided(schedule(overlap=Overlap.QUEUE), settled=0, now=21, busy_since=0) is None
    # and when the run is over, the waiting one begins
    assert decided(schedule(overlap=Overlap.QUEUE), settled=0, now=12) == Begin(TEN + 10 * MINUTE)


def test_a_time_that_is_too_late_is_skipped() -> None:
    found = schedule(late_max_s=300)
    assert decided(found, settled=0, now=15) == Begin(TEN + 10 * MINUTE)
    passed = decided(found, settled=0, now=16)
    assert isinstance(passed, Skip)
    assert (passed.due_ms, passed.reason.split(":")[0]) == (TEN + 10 * MINUTE, "too late")
    # with the missed times before it, which no other decision mentions
    assert decided(found, settled=0, now=36) == passed._replace(
        due_ms=TEN + 30 * MINUTE, missed_from_ms=TEN + 10 * MINUTE
    )
    # also when it was queued behind a long run
    queued = schedule(late_max_s=300, overlap=Overlap.QUEUE)
    assert isinstance(decided(queued, settled=0, now=16, busy_since=0), Skip)


def test_each_missed_time_runs_unless_it_is_too_late() -> None:
    found = schedule(late_max_s=1200, catch_up=CatchUp.ALL)
    # Times that are too late are reported with the first run
    assert decided(found, settled=0, now=45) == Begin(TEN + 30 * MINUTE, TEN + 10 * MINUTE)
    assert decided(found, settled=30, now=45) == Begin(TEN + 40 * MINUTE)
    latest = replace(found, catch_up=CatchUp.LATEST)
    assert decided(latest, settled=0, now=45) == Begin(TEN + 40 * MINUTE, TEN + 10 * MINUTE)


def test_a_late_start_waits_for_the_window() -> None:
    found = schedule(window="10:00-11:00")
    assert decided(found, settled=40, now=59) == Begin(TEN + 50 * MINUTE)
    assert decided(found, settled=40, now=60) is None
    assert decided(found, settled=40, now=600) is None
    # On the next day it begins, unless a newer time is due by then
    day = 24 * 60
    assert decided(found, settled=40, now=day) == Begin(TEN + day * MINUTE, TEN + 50 * MINUTE)
    each = replace(found, catch_up=CatchUp.ALL)
    assert decided(each, settled=40, now=day) == Begin(TEN + 50 * MINUTE)


def test_times_older_than_a_month_are_forgotten() -> None:
    found = schedule(catch_up=CatchUp.ALL)
    month = 31 * 24 * 60
    assert decided(found, settled=0, now=month + 60) == Begin(TEN + 60 * MINUTE)
