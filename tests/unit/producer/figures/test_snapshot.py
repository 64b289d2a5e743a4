"""Rates are those of the last seconds; shares and ETAs never overstate the progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from producer.figures.snapshot import Snapshot
from producer.figures.speed import RATE_OVER_S, recent_snapshot
from ringhaul.ledger.history import Sample
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.states import JobState
from tests.unit.producer.statuses import STARTED_MS, status


def look(
    at_s: float, *samples: Sample, bytes_total: int = 0, shown: Any = None, **figures: Any
) -> Snapshot:
    found = status(at_s, **({"labels": {"bytes_total": str(bytes_total)}} | figures))
    return recent_snapshot(found, samples, **(shown or {}))


def sample(at_s: float, done: int, *, rejected: int = 0) -> Sample:
    """A sample of a job with as many rows as bytes."""
    return Sample(
        at_ms=STARTED_MS + int(at_s * 1000), rows=done, rejected=rejected, bytes=done, workers=3
    )


def done(count: int) -> dict[str, int]:
    return {"rows": count, "bytes": count}


def test_the_first_speed_is_that_since_the_start() -> None:
    snapshot = look(5, bytes_total=1000, totals={"rows": 5, "bytes": 100})
    assert (snapshot.rows_per_s, snapshot.bytes_per_s, snapshot.eta_s) == (1, 20, 45)
    assert (snapshot.rows, snapshot.bytes_done, snapshot.bytes_total) == (5, 100, 1000)
    assert snapshot.state == "RUNNING"
    snapshot = look(0, bytes_total=1000, totals={"rows": 5, "bytes": 100})
    assert (snapshot.rows_per_s, snapshot.bytes_per_s, snapshot.eta_s) == (0, 0, None)


def test_committed_and_running_units_count_together() -> None:
    snapshot = look(
        0,
        bytes_total=1000,
        totals={"rows": 50, "rejected": 2, "bytes": 400, "retries": 3},
        live=Live(rows=7, rejected=1, bytes=60),
        shown={"workers": 4, "hosts": 2, "p50_ms": 1.5, "p99_ms": 9.0},
    )
    assert (snapshot.rows, snapshot.rejected, snapshot.bytes_done) == (57, 3, 460)
    assert (snapshot.retries, snapshot.workers, snapshot.hosts) == (3, 4, 2)
    assert (snapshot.p50_ms, snapshot.p99_ms, snapshot.share) == (1.5, 9.0, 0.46)


def test_rates_are_over_the_last_seconds_and_give_the_eta() -> None:
    # Given a job that crawled for 20 s and then got going
    crawled = [sample(0, 0), sample(10, 10), sample(20, 20), sample(30, 10_020)]
    snapshot = look(32, *crawled, bytes_total=100_000, totals=done(12_020))
    # Then the slow start does not count, and the ETA is that of the new rate
    assert RATE_OVER_S == 10
    assert snapshot.rows_per_s == pytest.approx(1000)
    assert snapshot.eta_s == pytest.approx((100_000 - 12_020) / 1000)
    assert snapshot.workers == 3


def test_rejected_records_are_no_rows_and_their_bytes_are_progress() -> None:
    snapshot = look(2, bytes_total=1000, totals={"rows": 10, "rejected": 30, "bytes": 40})
    assert (snapshot.rows_per_s, snapshot.eta_s) == (5, 48)


def test_a_retried_unit_makes_no_negative_rate() -> None:
    snapshot = look(12, sample(0, 0), sample(1, 510), bytes_total=1000, totals=done(10))
    assert (snapshot.rows_per_s, snapshot.bytes_per_s, snapshot.eta_s) == (0, 0, None)


def test_a_pause_and_the_time_before_a_resume_do_not_count() -> None:
    stopped: Sequence[Sample] = [sample(0, 0), sample(10, 1000), sample(3600, 1000)]
    snapshot = look(3605, *stopped, bytes_total=10_000, totals=done(1500))
    assert snapshot.rows_per_s == 100
    paused = look(3605, *stopped, totals=done(1500), paused_ms=STARTED_MS + 3_605_000)
    assert (paused.rows_per_s, paused.eta_s) == (0, None)


def test_an_ended_job_has_the_rates_of_its_whole_run() -> None:
    # Given a job of 4 s, and a snapshot a day later
    ended = status(
        86_400,
        state=JobState.COMPLETE,
        pending=0,
        done=8,
        finished_ms=STARTED_MS + 4000,
        totals={"rows": 100, "rejected": 10, "bytes": 1000},
        labels={"bytes_total": "1000"},
    )
    snapshot = recent_snapshot(ended, [])
    assert (snapshot.elapsed_s, snapshot.rows_per_s, snapshot.bytes_per_s) == (4, 25, 250)
    assert (snapshot.share, snapshot.eta_s) == (1.0, None)


def test_a_job_that_was_not_claimed_has_taken_no_time() -> None:
    snapshot = look(60, started_ms=None, units=0, pending=0, sealed=False)
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
    assert look(1, bytes_total=1000, **facts).share == share


def test_an_input_without_bytes_has_no_share() -> None:
    assert look(1).share == 0


def test_a_stalled_job_shows_the_reason_until_a_unit_is_done() -> None:
    # Given 2 units that failed 5 times, the last time when 3 units were done
    error = {
        "last_error": "no\nreplica  " + "x" * 900,
        "error_ms": STARTED_MS + 8_000,
        "error_done": 3,
        "failing": 2,
        "fails": 5,
    }
    retrying = look(20, done=3, pending=5, **error).retrying
    # Then the error is shown on one line, shortened
    assert retrying is not None
    assert retrying.startswith("2 units, failed 5 times, last 0:12 ago: no replica x")
    assert len(retrying) < 350
    # but not after a unit is done, nor if nothing is retried
    assert look(20, done=4, pending=4, **error).retrying is None
    assert look(20, done=3, paused_ms=STARTED_MS, **error).retrying is None
    assert look(20, done=3, state=JobState.FAILED, **error).retrying is None
    assert look(20, last_error="of an older version").retrying is None


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
    retrying = look(20, **facts).retrying
    assert retrying is not None
    assert retrying.startswith(
        "no unit is in progress; one was declined 0:12 ago: host1: no node answers x"
    )
    assert len(retrying) < 370
    # Then the latest reason is shown, unless the job is paused or has ended
    claimed = facts | {"declined": None, "declined_ms": None}
    assert "no replica" in (look(20, **claimed).retrying or "")
    assert look(20, paused_ms=STARTED_MS, **facts).retrying is None
    assert look(20, state=JobState.CANCELLED, **facts).retrying is None


def test_a_paused_job_has_no_eta_and_pauses_do_not_count_as_work() -> None:
    # Given a job that did half of its units in 10 s, and has been paused for 20 s
    paused = status(30, done=4, pending=4, paused_ms=STARTED_MS + 10_000)
    snapshot = recent_snapshot(paused, [])
    assert (snapshot.state, snapshot.eta_s, snapshot.share) == ("PAUSED", None, 0.5)
    # When it continues, the ETA of the other half is the time of the first
    assert look(30, done=4, pending=4, paused_total_ms=20_000).eta_s == 10
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
    assert recent_snapshot(ended, []).rows_per_s == 5
