"""Rates follow what was lately done; shares and ETAs never claim more than there is."""

import pytest

from producer.report.snapshot import RATE_WINDOW_S, RateMeter
from ringhaul.ledger.reading import Live
from ringhaul.ledger.states import JobState
from tests.unit.producer.statuses import STARTED_MS, status


def test_the_first_look_has_no_rates_yet() -> None:
    snapshot = RateMeter(1000).look(status(0, totals={"rows": 5, "bytes": 100}))
    assert (snapshot.rows_per_s, snapshot.bytes_per_s, snapshot.eta_s) == (0, 0, None)
    assert (snapshot.rows, snapshot.bytes_done, snapshot.bytes_total) == (5, 100, 1000)
    assert snapshot.state == "RUNNING"


def test_committed_and_running_units_count_together() -> None:
    snapshot = RateMeter(1000).look(
        status(
            0,
            totals={"rows": 50, "rejected": 2, "bytes": 400, "retries": 3},
            live=Live(rows=7, rejected=1, bytes=60),
        ),
        workers=4,
        hosts=2,
        p50_ms=1.5,
        p99_ms=9.0,
    )
    assert (snapshot.rows, snapshot.rejected, snapshot.bytes_done) == (57, 3, 460)
    assert (snapshot.retries, snapshot.workers, snapshot.hosts) == (3, 4, 2)
    assert (snapshot.p50_ms, snapshot.p99_ms, snapshot.share) == (1.5, 9.0, 0.46)


def test_rates_are_over_the_last_seconds_and_tell_when_it_ends() -> None:
    meter = RateMeter(100_000)
    # Given a job that crawled for 20 s and then got going
    for second in range(21):
        meter.look(status(second, totals={"rows": second, "bytes": second}))
    for second in range(21, 32):
        done = 20 + (second - 20) * 1000
        snapshot = meter.look(status(second, totals={"rows": done, "bytes": done}))
    # Then the crawl is forgotten, and what is left is reckoned at the new pace
    assert RATE_WINDOW_S == 10
    assert snapshot.rows_per_s == pytest.approx(1000)
    assert snapshot.eta_s == pytest.approx((100_000 - 11_020) / 1000)


def test_rejects_count_as_progress() -> None:
    meter = RateMeter(1000)
    meter.look(status(0, totals={}))
    snapshot = meter.look(status(2, totals={"rows": 10, "rejected": 30, "bytes": 40}))
    assert snapshot.rows_per_s == 20


def test_a_unit_that_is_tried_again_makes_no_negative_rate() -> None:
    meter = RateMeter(1000)
    meter.look(status(1, totals={"rows": 10, "bytes": 10}, live=Live(rows=500, bytes=500)))
    snapshot = meter.look(status(2, totals={"rows": 10, "bytes": 10}))
    assert (snapshot.rows_per_s, snapshot.bytes_per_s, snapshot.eta_s) == (0, 0, None)


def test_two_looks_at_one_moment_are_no_division_by_zero() -> None:
    meter = RateMeter(1000)
    meter.look(status(3, totals={"rows": 1, "bytes": 1}))
    assert meter.look(status(3, totals={"rows": 9, "bytes": 9})).rows_per_s == 0


def test_an_ended_job_is_told_on_the_whole() -> None:
    # Given a job of 4 s that is looked at a day later
    ended = status(
        86_400,
        state=JobState.COMPLETE,
        left=0,
        done=8,
        finished_ms=STARTED_MS + 4000,
        totals={"rows": 90, "rejected": 10, "bytes": 1000},
    )
    snapshot = RateMeter(1000).look(ended)
    assert (snapshot.elapsed_s, snapshot.rows_per_s, snapshot.bytes_per_s) == (4, 25, 250)
    assert (snapshot.share, snapshot.eta_s) == (1.0, None)


def test_a_job_nobody_has_claimed_has_taken_no_time() -> None:
    snapshot = RateMeter(1000).look(status(60, started_ms=None, units=0, left=0, sealed=False))
    assert (snapshot.elapsed_s, snapshot.share, snapshot.sealed) == (0, 0, False)


@pytest.mark.parametrize(
    ("facts", "share"),
    [
        # Decoded bytes of a compressed file are more than the file has
        ({"totals": {"bytes": 5000}}, 0.999),
        # A running job is not done, even when all its bytes are read
        ({"totals": {"bytes": 1000}, "done": 8, "left": 0}, 0.999),
        # A stopped one is as far as it got
        ({"state": JobState.CANCELLED, "totals": {"bytes": 250}, "done": 2}, 0.25),
        # One that ended while it was split has more to come than it knows
        (
            {"state": JobState.FAILED, "totals": {"bytes": 300}, "sealed": False, "done": 8},
            0.3,
        ),
        # Blank lines at the end belong to no unit
        ({"state": JobState.COMPLETE, "totals": {"bytes": 900}, "done": 8, "left": 0}, 1.0),
    ],
)
def test_the_share_done_is_of_bytes_and_one_only_at_the_end(
    facts: dict[str, object], share: float
) -> None:
    assert RateMeter(1000).look(status(1, **facts)).share == share


def test_an_input_without_bytes_has_no_share() -> None:
    assert RateMeter(0).look(status(1)).share == 0


def test_a_job_that_stands_still_says_why_until_a_unit_is_done() -> None:
    # Given 2 units that failed 5 times, the last time when 3 units were done
    error = {
        "last_error": "no\nreplica  " + "x" * 900,
        "error_ms": STARTED_MS + 8_000,
        "error_done": 3,
        "failing": 2,
        "fails": 5,
    }
    meter = RateMeter(0)
    told = meter.look(status(20, done=3, left=5, **error)).retrying
    # Then the error is told, on one line and not at length
    assert told is not None
    assert told.startswith("2 units, failed 5 times, last 0:12 ago: no replica x")
    assert len(told) < 350
    # and no more once a unit is done, or where nothing is tried again
    assert meter.look(status(20, done=4, left=4, **error)).retrying is None
    assert meter.look(status(20, done=3, paused_ms=STARTED_MS, **error)).retrying is None
    assert meter.look(status(20, done=3, state=JobState.FAILED, **error)).retrying is None
    assert meter.look(status(20, last_error="of an older version")).retrying is None


def test_a_job_that_nobody_can_work_on_says_why_until_a_unit_is_claimed() -> None:
    # Given a unit that failed, and later one that a worker could not take
    facts = {
        "last_error": "no replica",
        "error_ms": STARTED_MS + 2_000,
        "failing": 1,
        "fails": 1,
        "declined": "host1: no\nnode answers " + "x" * 900,
        "declined_ms": STARTED_MS + 8_000,
    }
    meter = RateMeter(0)
    told = meter.look(status(20, **facts)).retrying
    assert told is not None
    assert told.startswith(
        "no unit is worked on, one was declined 0:12 ago: host1: no node answers x"
    )
    assert len(told) < 370
    # Then what is told is what came last, as long as the job is to go on
    claimed = facts | {"declined": None, "declined_ms": None}
    assert "no replica" in (meter.look(status(20, **claimed)).retrying or "")
    assert meter.look(status(20, paused_ms=STARTED_MS, **facts)).retrying is None
    assert meter.look(status(20, state=JobState.CANCELLED, **facts)).retrying is None


def test_a_paused_job_has_no_end_in_sight_and_its_pauses_are_no_work() -> None:
    # Given a job by units that did half of them in 10 s, and has been paused for 20 s
    meter = RateMeter(0)
    paused = status(30, done=4, left=4, paused_ms=STARTED_MS + 10_000)
    snapshot = meter.look(paused)
    assert (snapshot.state, snapshot.eta_s, snapshot.share) == ("PAUSED", None, 0.5)
    # When it goes on, then the rest takes as long as the half that is done
    assert meter.look(status(30, done=4, left=4, paused_total_ms=20_000)).eta_s == 10
    # And once it is over its rate is that of the time it worked
    ended = status(
        90,
        state=JobState.COMPLETE,
        left=0,
        done=8,
        finished_ms=STARTED_MS + 40_000,
        paused_total_ms=20_000,
        totals={"rows": 100},
    )
    assert meter.look(ended).rows_per_s == 5
