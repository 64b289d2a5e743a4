"""Rates are those of the last seconds; shares and ETAs never overstate the progress."""

import pytest

from producer.report.snapshot import RATE_WINDOW_S, RateMeter
from ringhaul.ledger.reading import Live
from ringhaul.ledger.states import JobState
from tests.unit.producer.statuses import STARTED_MS, status


def test_the_first_snapshot_has_no_rates_yet() -> None:
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


def test_rates_are_over_the_last_seconds_and_give_the_eta() -> None:
    meter = RateMeter(100_000)
    # Given a job that crawled for 20 s and then got going
    for second in range(21):
        meter.look(status(second, totals={"rows": second, "bytes": second}))
    for second in range(21, 32):
        done = 20 + (second - 20) * 1000
        snapshot = meter.look(status(second, totals={"rows": done, "bytes": done}))
    # Then the slow start does not count, and the ETA is that of the new rate
    assert RATE_WINDOW_S == 10
    assert snapshot.rows_per_s == pytest.approx(1000)
    assert snapshot.eta_s == pytest.approx((100_000 - 11_020) / 1000)


def test_rejects_count_as_progress() -> None:
    meter = RateMeter(1000)
    meter.look(status(0, totals={}))
    snapshot = meter.look(status(2, totals={"rows": 10, "rejected": 30, "bytes": 40}))
    assert snapshot.rows_per_s == 20


def test_a_retried_unit_makes_no_negative_rate() -> None:
    meter = RateMeter(1000)
    meter.look(status(1, totals={"rows": 10, "bytes": 10}, live=Live(rows=500, bytes=500)))
    snapshot = meter.look(status(2, totals={"rows": 10, "bytes": 10}))
    assert (snapshot.rows_per_s, snapshot.bytes_per_s, snapshot.eta_s) == (0, 0, None)


def test_two_snapshots_at_one_moment_do_not_divide_by_zero() -> None:
    meter = RateMeter(1000)
    meter.look(status(3, totals={"rows": 1, "bytes": 1}))
    assert meter.look(status(3, totals={"rows": 9, "bytes": 9})).rows_per_s == 0


def test_an_ended_job_has_the_rates_of_its_whole_run() -> None:
    # Given a job of 4 s, and a snapshot a day later
    ended = status(
        86_400,
        state=JobState.COMPLETE,
        pending=0,
        done=8,
        finished_ms=STARTED_MS + 4000,
        totals={"rows": 90, "rejected": 10, "bytes": 1000},
    )
    snapshot = RateMeter(1000).look(ended)
    assert (snapshot.elapsed_s, snapshot.rows_per_s, snapshot.bytes_per_s) == (4, 25, 250)
    assert (snapshot.share, snapshot.eta_s) == (1.0, None)


def test_a_job_that_was_not_claimed_has_taken_no_time() -> None:
    snapshot = RateMeter(1000).look(status(60, started_ms=None, units=0, pending=0, sealed=False))
    assert (snapshot.elapsed_s, snapshot.share, snapshot.sealed) == (0, 0, False)


@pytest.mark.parametrize(
    ("facts", "share"),
    [
        # The decoded bytes of a compressed file exceed its size
        ({"totals": {"bytes": 5000}}, 0.999),
        # A running job is not done, even when all its bytes are read
        ({"totals": {"bytes": 1000}, "done": 8, "pending": 0}, 0.999),
        # A stopped job shows how far it got
        ({"state": JobState.CANCELLED, "totals": {"bytes": 250}, "done": 2}, 0.25),
        # A job that ended while it was split does not know all of its units
        (
            {"state": JobState.FAILED, "totals": {"bytes": 300}, "sealed": False, "done": 8},
            0.3,
        ),
        # Blank lines at the end belong to no unit
        ({"state": JobState.COMPLETE, "totals": {"bytes": 900}, "done": 8, "pending": 0}, 1.0),
    ],
)
def test_the_share_counts_bytes_and_is_one_only_at_the_end(
    facts: dict[str, object], share: float
) -> None:
    assert RateMeter(1000).look(status(1, **facts)).share == share


def test_an_input_without_bytes_has_no_share() -> None:
    assert RateMeter(0).look(status(1)).share == 0


def test_a_stalled_job_shows_the_reason_until_a_unit_is_done() -> None:
    # Given 2 units that failed 5 times, the last time when 3 units were done
    error = {
        "last_error": "no\nreplica  " + "x" * 900,
        "error_ms": STARTED_MS + 8_000,
        "error_done": 3,
        "failing": 2,
        "fails": 5,
    }
    meter = RateMeter(0)
    retrying = meter.look(status(20, done=3, pending=5, **error)).retrying
    # Then the error is shown on one line, shortened
    assert retrying is not None
    assert retrying.startswith("2 units, failed 5 times, last 0:12 ago: no replica x")
    assert len(retrying) < 350
    # but not after a unit is done, nor if nothing is retried
    assert meter.look(status(20, done=4, pending=4, **error)).retrying is None
    assert meter.look(status(20, done=3, paused_ms=STARTED_MS, **error)).retrying is None
    assert meter.look(status(20, done=3, state=JobState.FAILED, **error)).retrying is None
    assert meter.look(status(20, last_error="of an older version")).retrying is None


def test_a_declined_job_shows_the_reason_until_a_unit_is_claimed() -> None:
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
    retrying = meter.look(status(20, **facts)).retrying
    assert retrying is not None
    assert retrying.startswith(
        "no unit is in progress; one was declined 0:12 ago: host1: no node answers x"
    )
    assert len(retrying) < 370
    # Then the latest reason is shown, unless the job is paused or has ended
    claimed = facts | {"declined": None, "declined_ms": None}
    assert "no replica" in (meter.look(status(20, **claimed)).retrying or "")
    assert meter.look(status(20, paused_ms=STARTED_MS, **facts)).retrying is None
    assert meter.look(status(20, state=JobState.CANCELLED, **facts)).retrying is None


def test_a_paused_job_has_no_eta_and_pauses_do_not_count_as_work() -> None:
    # Given a job that did half of its units in 10 s, and has been paused for 20 s
    meter = RateMeter(0)
    paused = status(30, done=4, pending=4, paused_ms=STARTED_MS + 10_000)
    snapshot = meter.look(paused)
    assert (snapshot.state, snapshot.eta_s, snapshot.share) == ("PAUSED", None, 0.5)
    # When it continues, the ETA of the other half is the time of the first
    assert meter.look(status(30, done=4, pending=4, paused_total_ms=20_000)).eta_s == 10
    # And when it has ended, its rate is that of the time it worked
    ended = status(
        90,
        state=JobState.COMPLETE,
        pending=0,
        done=8,
        finished_ms=STARTED_MS + 40_000,
        paused_total_ms=20_000,
        totals={"rows": 100},
    )
    assert meter.look(ended).rows_per_s == 5
