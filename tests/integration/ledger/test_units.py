"""One unit's way: issue, claim, renew, commit, release; and who may change a lease."""

import pytest
import redis

from ringhaul.ledger.answers import Claimed, Commit, Issued, Lease, Refusal
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import JobState
from tests.integration.ledger.conftest import Clock, new_job

LEASE_MS = 60_000


def test_a_unit_from_issue_to_commit(ledger: Ledger) -> None:
    job = new_job(ledger, 2)
    assert ledger.issue(job, 8) == Issued(1, [0, 1])
    assert ledger.claim(job, 0, 1, "a", LEASE_MS) == Claimed(1, "spec-0")
    assert (
        ledger.renew(job, 0, "a", LEASE_MS, Live(rows=5, rejected=1, bytes=900)).lease is Lease.OK
    )
    status = ledger.status(job)
    assert (status.leased, status.issued, status.pending) == (1, 1, 2)
    assert status.live == Live(rows=5, rejected=1, bytes=900)
    assert status.totals == {}

    answer = ledger.commit(
        job, 0, 1, "a", "r0", {"rows": 9, "rejected": 1}, {"12": 3}, extra=b"\x00bad\xff"
    )
    assert answer is Commit.COUNTED
    status = ledger.status(job)
    assert (status.done, status.pending, status.leased) == (1, 1, 0)
    assert status.totals == {"rows": 9, "rejected": 1}
    assert status.live == Live()
    assert ledger.latencies(job) == {"12": 3}
    assert list(ledger.results(job)) == [(0, "r0")]
    assert list(ledger.extras(job)) == [(0, b"\x00bad\xff")]


def test_claims_that_are_refused(ledger: Ledger) -> None:
    job = new_job(ledger, 3)
    assert ledger.claim("ld-none", 0, 1, "a", LEASE_MS) is Refusal.UNKNOWN
    assert ledger.claim(job, 3, 1, "a", LEASE_MS) is Refusal.UNKNOWN
    assert ledger.claim(job, 0, 1, "a", LEASE_MS) is Refusal.BUSY  # not issued yet
    ledger.issue(job, 1)
    assert ledger.claim(job, 0, 2, "a", LEASE_MS) is Refusal.STOP
    assert isinstance(ledger.claim(job, 0, 1, "a", LEASE_MS), Claimed)
    assert ledger.claim(job, 0, 1, "b", LEASE_MS) is Refusal.BUSY
    ledger.commit(job, 0, 1, "a", "", {})
    assert ledger.claim(job, 0, 1, "b", LEASE_MS) is Refusal.DONE
    ledger.cancel(job)
    assert ledger.claim(job, 1, 1, "b", LEASE_MS) is Refusal.STOP


def test_a_claim_whose_answer_was_lost_is_the_same_attempt(ledger: Ledger) -> None:
    job = new_job(ledger, 1)
    ledger.issue(job, 1)
    first = ledger.claim(job, 0, 1, "a", LEASE_MS)
    assert ledger.claim(job, 0, 1, "a", LEASE_MS) == first == Claimed(1, "spec-0")


def test_the_window_bounds_what_is_issued_and_leased(ledger: Ledger) -> None:
    job = new_job(ledger, 10)
    assert ledger.issue(job, 4).units == [0, 1, 2, 3]
    assert ledger.issue(job, 4).units == []
    ledger.claim(job, 0, 1, "a", LEASE_MS)
    assert ledger.issue(job, 4).units == []
    ledger.commit(job, 0, 1, "a", "", {})
    assert ledger.issue(job, 4).units == [4]
    assert ledger.issue(job, 2).units == []  # a smaller window


def test_only_the_first_commit_of_any_attempt_counts(clocked: Ledger, clock: Clock) -> None:
    """
    1. A claims and stalls; its lease expires.
    2. B claims the same unit.
    3. A wakes and commits, B commits, A's commit is sent again.
    """
    job = new_job(clocked, 2)
    clocked.issue(job, 2)
    clocked.claim(job, 0, 1, "a", LEASE_MS)
    clock.advance(LEASE_MS)
    assert clocked.sweep(job).expired == 1
    clocked.issue(job, 2)
    assert clocked.claim(job, 0, 1, "b", LEASE_MS) == Claimed(2, "spec-0")

    assert clocked.renew(job, 0, "a", LEASE_MS).lease is Lease.LOST
    assert clocked.commit(job, 0, 1, "a", "by a", {"rows": 10}, {"1": 1}, b"ra") == 1
    assert clocked.renew(job, 0, "b", LEASE_MS).lease is Lease.LOST
    assert clocked.commit(job, 0, 1, "b", "by b", {"rows": 11}, {"2": 1}, b"rb") == 0
    assert clocked.commit(job, 0, 1, "a", "by a", {"rows": 10}, {"1": 1}, b"ra") == 0
    status = clocked.status(job)
    assert status.totals == {"rows": 10}
    assert (status.done, status.pending) == (1, 1)
    assert clocked.latencies(job) == {"1": 1}
    assert list(clocked.results(job)) == [(0, "by a")]
    assert list(clocked.extras(job)) == [(0, b"ra")]


def test_a_stale_attempt_can_neither_release_nor_lose_the_lease(ledger: Ledger) -> None:
    job = new_job(ledger, 1)
    ledger.issue(job, 1)
    ledger.claim(job, 0, 1, "a", LEASE_MS)
    assert ledger.release(job, 0, "z") is Lease.LOST
    assert ledger.lost(job, 0, "z") is Lease.LOST
    assert ledger.renew(job, 0, "a", LEASE_MS).lease is Lease.OK
    assert ledger.release(job, 0, "a") is Lease.OK
    assert ledger.release(job, 0, "a") is Lease.LOST  # repeated: it has no effect


def test_an_attempt_that_lost_its_unit_does_not_fail_the_job(ledger: Ledger) -> None:
    job = new_job(ledger, 2)
    ledger.issue(job, 2)
    for unit in (0, 1):
        ledger.claim(job, unit, 1, f"a{unit}", LEASE_MS)
        ledger.lost(job, unit, f"a{unit}")
    # When attempts that lost their units report a permanent error
    assert ledger.release(job, 0, "a0", "no such mount", fatal=True) is Lease.LOST
    assert ledger.lost(job, 1, "a1", fatal="no such mount") is Lease.LOST
    assert ledger.fail(job, "of before", epoch=2) is JobState.RUNNING
    assert ledger.status(job).last_error is None
    # Then only the current holders may fail the job
    ledger.issue(job, 2)
    ledger.claim(job, 0, 1, "b0", LEASE_MS)
    assert ledger.release(job, 0, "b0", "no such file", fatal=True) is Lease.OK
    status = ledger.status(job)
    assert (status.state, status.last_error, status.leased) == (JobState.FAILED, "no such file", 0)
    assert ledger.resume(job) == 2
    ledger.issue(job, 2)
    ledger.claim(job, 1, 2, "b1", LEASE_MS)
    assert ledger.lost(job, 1, "b1", fatal="gone") is Lease.OK
    status = ledger.status(job)
    assert (status.state, status.last_error, status.leased) == (JobState.FAILED, "gone", 0)


def test_a_job_whose_only_unit_cannot_be_done_keeps_the_reason(ledger: Ledger) -> None:
    # Given a job that must not run twice, with all units started
    job = new_job(ledger, 1, starts_max=1)
    ledger.issue(job, 1)
    ledger.claim(job, 0, 1, "a", LEASE_MS)
    # When its unit fails half way with a permanent error
    assert ledger.lost(job, 0, "a", fatal="no right to write") is Lease.OK
    status = ledger.status(job)
    # Then the job failed with that reason, and the unit does not run again
    assert (status.state, status.last_error) == (JobState.FAILED, "no right to write")
    assert (status.quarantined, status.leased, status.pending) == (1, 0, 0)


def test_a_checkpoint_outlives_its_attempt_and_goes_with_the_commit(ledger: Ledger) -> None:
    job = new_job(ledger, 1)
    ledger.issue(job, 1)
    ledger.claim(job, 0, 1, "a", LEASE_MS)
    assert ledger.cursor(job, 0) is None
    assert ledger.checkpoint(job, 0, "b", b"not the owner") is Lease.LOST
    assert ledger.checkpoint(job, 0, "a", b"half") is Lease.OK
    ledger.lost(job, 0, "a")
    assert ledger.checkpoint(job, 0, "a", b"a zombie's") is Lease.LOST
    ledger.issue(job, 1)
    ledger.claim(job, 0, 1, "b", LEASE_MS)
    assert ledger.cursor(job, 0) == b"half"

    ledger.cancel(job)
    assert ledger.checkpoint(job, 0, "b", b"most") is Lease.STOP
    ledger.resume(job)
    assert ledger.cursor(job, 0) == b"most"
    ledger.issue(job, 1)
    ledger.claim(job, 0, 2, "c", LEASE_MS)
    assert ledger.commit(job, 0, 2, "c", "r", {}) is Commit.COUNTED
    assert ledger.cursor(job, 0) is None


def test_a_release_has_a_delay_and_does_not_count_as_a_start(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 2)
    clocked.issue(job, 1)
    clocked.claim(job, 0, 1, "a", LEASE_MS)
    clocked.release(job, 0, "a", "node1 timed out", blamed=True, delay_ms=500)
    assert clocked.status(job).last_error == "node1 timed out"
    assert clocked.claim(job, 0, 1, "b", LEASE_MS) is Refusal.BUSY  # an old message, too early
    assert clocked.issue(job, 1).units == [1]
    clock.advance(500)
    assert clocked.issue(job, 2).units == [0]
    assert clocked.claim(job, 0, 1, "b", LEASE_MS) == Claimed(1, "spec-0")


def test_a_job_is_stalled_from_an_error_until_a_unit_is_done(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 3)

    def claim(*units: int) -> None:
        clocked.issue(job, 3)
        for unit in units:
            assert isinstance(clocked.claim(job, unit, 1, f"t{unit}", LEASE_MS), Claimed)

    # Given a job with one done unit, and one released at a shutdown
    claim(0, 1, 2)
    clocked.commit(job, 0, 1, "t0", "r", {})
    clocked.release(job, 1, "t1")
    assert not clocked.status(job).stands_still
    # When two units fail, one of them twice
    claim(1)
    clocked.release(job, 1, "t1", "too few replicas", blamed=True)
    clocked.release(job, 2, "t2", "too few replicas", blamed=True)
    clock.advance(7_000)
    claim(1)
    clocked.release(job, 1, "t1", "still too few", blamed=True)
    # Then the job is stalled
    status = clocked.status(job)
    assert (status.stands_still, status.last_error) == (True, "still too few")
    assert (status.failing, status.fails, status.error_ms) == (2, 3, clock.now_ms)
    # and no longer when one of them is done
    claim(2)
    clocked.commit(job, 2, 1, "t2", "r", {})
    status = clocked.status(job)
    assert (status.stands_still, status.failing, status.fails) == (False, 1, 2)
    # A resume forgets earlier failures
    claim(1)
    clocked.release(job, 1, "t1", "still too few", blamed=True)
    assert clocked.status(job).stands_still
    clocked.cancel(job)
    assert not clocked.status(job).stands_still
    clocked.resume(job)
    status = clocked.status(job)
    assert (status.stands_still, status.last_error, status.failing) == (False, None, 0)


def test_shutdowns_blame_no_unit_but_failures_end_the_job(ledger: Ledger) -> None:
    job = new_job(ledger, 1)

    def attempt(token: str, *, blamed: bool) -> None:
        ledger.issue(job, 1)
        assert ledger.claim(job, 0, 1, token, LEASE_MS) == Claimed(1, "spec-0")
        ledger.release(job, 0, token, f"reason {token}", blamed=blamed)

    for number in range(20):
        attempt(f"shutdown{number}", blamed=False)
    for number in range(5):
        attempt(f"fail{number}", blamed=True)
        assert ledger.status(job).state is JobState.RUNNING
    attempt("fail5", blamed=True)
    status = ledger.status(job)
    assert (status.state, status.last_error) == (JobState.FAILED, "reason fail5")


def test_a_stopped_job_keeps_what_unfinished_units_had_done(ledger: Ledger) -> None:
    job = new_job(ledger, 2)
    ledger.issue(job, 2)
    ledger.claim(job, 0, 1, "a", LEASE_MS)
    ledger.claim(job, 1, 1, "b", LEASE_MS)
    ledger.cancel(job)
    progress = Live(rows=70, rejected=0, bytes=7000)
    assert ledger.renew(job, 0, "a", LEASE_MS, progress).lease is Lease.STOP
    assert ledger.release(job, 0, "a") is Lease.OK
    assert ledger.commit(job, 1, 1, "b", "r1", {"rows": 100}) is Commit.COUNTED
    status = ledger.status(job)
    assert (status.state, status.leased) == (JobState.CANCELLED, 0)
    assert (status.totals, status.live) == ({"rows": 100}, progress)
    # The resumed job runs only unit 0, from its start.
    epoch = ledger.resume(job)
    assert ledger.status(job).live == Live()
    assert ledger.issue(job, 8) == Issued(epoch, [0])


@pytest.mark.parametrize("value", ["1.5", "", "007", "-0", "9" * 16, "1e3", "nan"])
def test_a_bad_count_is_refused_before_anything_is_written(
    ledger: Ledger, client: redis.Redis, value: str
) -> None:
    job = new_job(ledger, 1)
    before = _dump(client, job)
    with pytest.raises(redis.ResponseError, match="BADARG"):
        ledger.commit(job, 0, 1, "a", "r", {"rows": 1, "bytes": value})  # type: ignore[dict-item]
    with pytest.raises(redis.ResponseError, match="BADARG"):
        ledger.commit(job, 0, 1, "a", "r", {"rows": 1}, {"3": value})  # type: ignore[dict-item]
    assert _dump(client, job) == before


def _dump(client: redis.Redis, job: str) -> dict[bytes, bytes | None]:
    return {key: client.dump(key) for key in sorted(client.keys(f"ringhaul:{{{job}}}:*"))}


def test_the_cause_of_an_early_end_stays_until_a_resume(ledger: Ledger) -> None:
    """It says whether trying again may help, which the state does not."""
    for number, (end, state) in enumerate(
        (
            (lambda job: ledger.cancel(job), JobState.CANCELLED),
            (lambda job: ledger.cancel(job, cause="Interrupted"), JobState.CANCELLED),
            (lambda job: ledger.fail(job, "x", cause="SourceUnavailable"), JobState.FAILED),
            (lambda job: released(ledger, job, fatal=True), JobState.FAILED),
            (lambda job: released(ledger, job, blamed=True), JobState.FAILED),
        )
    ):
        job = f"ld-cause{number}"
        ledger.create(job, {}, "{}")
        ledger.add_units(job, 1, 0, ["a"])
        ledger.seal(job, 1, 1)
        end(job)
        status = ledger.status(job)
        wanted = ("Cancelled", "Interrupted", "SourceUnavailable", "SourceChanged", "OutputLost")
        assert (status.state, status.cause) == (state, wanted[number])
        ledger.resume(job)
        assert ledger.status(job).cause == ""


def released(ledger: Ledger, job: str, *, fatal: bool = False, blamed: bool = False) -> None:
    cause = "SourceChanged" if fatal else "OutputLost"
    for _ in range(ledger.fails_max + 1):
        ledger.issue(job, 1)
        ledger.claim(job, 0, 1, "t", 10_000)
        ledger.release(job, 0, "t", "no", fatal=fatal, blamed=blamed, cause=cause)
