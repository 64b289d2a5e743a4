"""Positions of lost attempts: recorded once each, also if the report comes late."""

from __future__ import annotations

import pytest
import redis

from ringhaul.breadcrumb import Loss
from ringhaul.ledger import keys
from ringhaul.ledger.answers import Claimed, Commit, Lease
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import JobState
from tests.integration.ledger.conftest import Clock, new_job

LEASE_MS = 60_000


def loss(first: int, end: int) -> Loss:
    """Return the loss of a process that was converting the records [first, end)."""
    return Loss("convert", "in.csv", "n", first + 2, first, end, 0)


def claim(ledger: Ledger, job: str, token: str, epoch: int = 1) -> int:
    """Claim unit 0, and return the attempt's number."""
    ledger.issue(job, 1)
    claimed = ledger.claim(job, 0, epoch, token, LEASE_MS)
    assert isinstance(claimed, Claimed)
    return claimed.attempt


def run_out(ledger: Ledger, clock: Clock, job: str) -> None:
    """Let the lease of unit 0 expire before its worker reports."""
    clock.advance(LEASE_MS)
    assert ledger.sweep(job).expired == 1


def test_a_loss_reported_late_is_known_to_the_attempt_after_next(
    clocked: Ledger, clock: Clock
) -> None:
    job = new_job(clocked, 1)
    claim(clocked, job, "a")
    run_out(clocked, clock, job)
    assert claim(clocked, job, "b") == 2
    # When the loss of "a" is reported while "b" has the unit
    assert clocked.lost(job, 0, "a", loss=loss(0, 64), epoch=1) is Lease.LOST
    # Then it is recorded, and "b" still has the unit
    assert clocked.losses(job, 0) == [loss(0, 64)]
    assert clocked.renew(job, 0, "b", LEASE_MS).lease is Lease.OK
    assert (clocked.status(job).leased, clocked.status(job).quarantined) == (1, 0)


def test_a_late_loss_that_narrows_down_the_record_does_not_blame_the_unit(
    clocked: Ledger, clock: Clock
) -> None:
    job = new_job(clocked, 1)
    claim(clocked, job, "a")
    clocked.lost(job, 0, "a", loss=loss(0, 64), epoch=1)
    assert claim(clocked, job, "b") == 2
    run_out(clocked, clock, job)
    assert clocked.lost(job, 0, "b", loss=loss(3, 4), epoch=1) is Lease.LOST
    assert claim(clocked, job, "c") == 2
    assert clocked.losses(job, 0) == [loss(0, 64), loss(3, 4)]


@pytest.mark.parametrize("late", [False, True])
def test_a_loss_reported_twice_counts_once(clocked: Ledger, clock: Clock, late: bool) -> None:
    job = new_job(clocked, 1)
    claim(clocked, job, "a")
    clocked.lost(job, 0, "a", loss=loss(0, 64), epoch=1)
    claim(clocked, job, "b")
    if late:
        run_out(clocked, clock, job)
    answer = Lease.LOST if late else Lease.OK
    assert clocked.lost(job, 0, "b", loss=loss(3, 4), epoch=1) is answer
    assert clocked.lost(job, 0, "b", loss=loss(3, 4), epoch=1) is Lease.LOST
    assert clocked.lost(job, 0, "a", loss=loss(0, 64), epoch=1) is Lease.LOST
    assert clocked.losses(job, 0) == [loss(0, 64), loss(3, 4)]
    assert claim(clocked, job, "c") == 2


def test_no_loss_is_recorded_for_a_done_unit(ledger: Ledger, client: redis.Redis) -> None:
    job = new_job(ledger, 2)
    claim(ledger, job, "a")
    ledger.lost(job, 0, "a", loss=loss(0, 64), epoch=1)
    claim(ledger, job, "b")
    # Given a process that died after its commit, before it reported to its parent
    assert ledger.commit(job, 0, 1, "b", "r", {"rows": 64}) is Commit.COUNTED
    assert ledger.lost(job, 0, "b", loss=loss(3, 4), epoch=1) is Lease.LOST
    assert not client.exists(keys.job_key(job, "losses"), keys.job_key(job, "starts"))


def test_a_loss_does_not_change_a_unit_that_was_given_up(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 2, starts_max=1)
    claim(clocked, job, "a")
    run_out(clocked, clock, job)
    assert clocked.lost(job, 0, "a", loss=loss(0, 64), epoch=1, fatal="gone") is Lease.LOST
    assert clocked.quarantined_units(job) == {0: "crashed"}
    assert clocked.losses(job, 0) == []
    assert clocked.status(job).state is JobState.RUNNING


def test_a_resume_forgets_earlier_losses(clocked: Ledger) -> None:
    job = new_job(clocked, 1)
    claim(clocked, job, "a")
    clocked.cancel(job)
    assert clocked.resume(job) == 2
    claim(clocked, job, "b", epoch=2)
    assert clocked.lost(job, 0, "a", loss=loss(0, 64), epoch=1) is Lease.LOST
    assert clocked.losses(job, 0) == []
