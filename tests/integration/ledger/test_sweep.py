"""Lost workers, lost messages, and units that keep killing their worker."""

import redis

from ringhaul.ledger import keys
from ringhaul.ledger.answers import Claimed, Issued, Lease, Refusal
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import JobState
from ringhaul.ledger.sweep import sweep_running
from tests.integration.ledger.conftest import Clock, new_job

LEASE_MS = 60_000


def die(ledger: Ledger, job: str, unit: int, token: str) -> None:
    """Claim a unit and lose the worker."""
    assert isinstance(ledger.claim(job, unit, 1, token, LEASE_MS), Claimed)
    ledger.lost(job, unit, token)


def test_a_unit_with_an_expired_lease_is_issued_again(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 3)
    clocked.issue(job, 2)
    clocked.claim(job, 0, 1, "a", LEASE_MS)
    clocked.claim(job, 1, 1, "b", LEASE_MS)
    clock.advance(LEASE_MS - 1)
    assert clocked.sweep(job).expired == 0
    clocked.renew(job, 1, "b", LEASE_MS)
    clock.advance(1)
    assert clocked.sweep(job) == (JobState.RUNNING, 1, 0)
    assert clocked.sweep(job) == (JobState.RUNNING, 0, 0)  # any number of sweepers
    assert clocked.issue(job, 3).units == [0, 2]


def test_a_claim_may_take_an_expired_lease_before_any_sweep(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 1)
    clocked.issue(job, 1)
    clocked.claim(job, 0, 1, "a", LEASE_MS)
    clock.advance(LEASE_MS)
    assert clocked.claim(job, 0, 1, "b", LEASE_MS) == Claimed(2, "spec-0")


def test_a_lost_worker_s_unit_is_issued_at_once(clocked: Ledger) -> None:
    job = new_job(clocked, 1)
    clocked.issue(job, 1)
    die(clocked, job, 0, "a")
    assert clocked.issue(job, 1).units == [0]
    assert clocked.claim(job, 0, 1, "b", LEASE_MS) == Claimed(2, "spec-0")


def test_a_lost_message_is_sent_again(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 2)
    clocked.issue(job, 2)
    clocked.claim(job, 0, 1, "a", LEASE_MS)
    clock.advance(29_999)
    assert clocked.sweep(job).unclaimed == 0
    clock.advance(1)
    assert clocked.sweep(job).unclaimed == 1
    assert clocked.issue(job, 2).units == [1]


def test_a_declined_unit_is_issued_again_at_once(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 1)
    # Given workers without a session, for so long that the sweep waits longer for lost messages
    for _ in range(40):
        assert clocked.issue(job, 1).units == [0]
        assert clocked.decline(job, 0, 1) is Lease.OK
        clock.advance(15_000)
        assert clocked.sweep(job).unclaimed == 0
    # When they have a session, then the unit does not wait
    assert clocked.issue(job, 1).units == [0]
    assert clocked.decline(job, 0, 2) is Lease.LOST  # with a message of another epoch
    assert clocked.claim(job, 0, 1, "a", LEASE_MS) == Claimed(1, "spec-0")
    # and it is too late to decline it
    assert clocked.decline(job, 0, 1) is Lease.LOST
    # A delay is respected
    clocked.release(job, 0, "a")
    clocked.issue(job, 1)
    assert clocked.decline(job, 0, 1, delay_ms=3000) is Lease.OK
    assert clocked.issue(job, 1).units == []
    clock.advance(3000)
    assert clocked.issue(job, 1).units == [0]


def test_the_reason_of_declined_units_is_kept_until_one_is_claimed(
    clocked: Ledger, clock: Clock
) -> None:
    job = new_job(clocked, 2)

    def decline(unit: int, reason: str) -> tuple[str | None, int | None]:
        clocked.issue(job, 2)
        assert clocked.decline(job, unit, clocked.status(job).epoch, reason=reason) is Lease.OK
        status = clocked.status(job)
        return status.declined, status.declined_ms

    clock.advance(7_000)
    assert decline(0, "host1: no node answers") == ("host1: no node answers", clock.now_ms)
    assert decline(0, "host2: " + "x" * 900)[0] == "host2: " + "x" * 493
    assert decline(0, "")[0] == "host2: " + "x" * 493
    # It is not shown while other units run
    clocked.issue(job, 2)
    clocked.claim(job, 1, 1, "a", LEASE_MS)
    assert clocked.status(job).declined is None
    assert decline(0, "host1: no node answers") == (None, None)
    clocked.release(job, 1, "a")
    assert decline(0, "host1: no node answers")[0] == "host1: no node answers"
    # It is not an error of the job, and a resume forgets it
    assert clocked.status(job).last_error is None
    clocked.cancel(job)
    clocked.resume(job)
    assert (clocked.status(job).declined, clocked.status(job).declined_ms) == (None, None)


def test_messages_in_a_long_queue_are_not_copied_for_ever(clocked: Ledger, clock: Clock) -> None:
    """Without a claim for an hour, the same unit is issued again at growing intervals."""
    job = new_job(clocked, 1)
    clocked.issue(job, 1)
    copies = 0
    for _ in range(3600):
        clock.advance(1000)
        if clocked.sweep(job).unclaimed:
            copies += len(clocked.issue(job, 1).units)
    assert 5 <= copies <= 12  # 30 s apart it would be 120
    assert isinstance(clocked.claim(job, 0, 1, "late", LEASE_MS), Claimed)


def test_a_suspect_runs_last_and_alone(clocked: Ledger) -> None:
    """
    1. Unit 0 loses two workers: a suspect.
    2. Units 1..3 are issued and claimed; an old message for unit 0 gets nothing.
    3. Only when all others are done is unit 0 issued, and nothing beside it.
    """
    job = new_job(clocked, 4, seal=False)
    for token in ("a", "b"):
        clocked.issue(job, 1)
        die(clocked, job, 0, token)
    assert clocked.status(job).suspects == 1
    assert clocked.issue(job, 8).units == [1, 2, 3]
    for unit in (1, 2, 3):
        assert clocked.claim(job, 0, 1, "early", LEASE_MS) is Refusal.BUSY
        clocked.claim(job, unit, 1, f"t{unit}", LEASE_MS)
        assert clocked.issue(job, 8).units == []
        clocked.commit(job, unit, 1, f"t{unit}", "", {"rows": 1})
    assert clocked.issue(job, 8).units == []  # more units may follow
    clocked.seal(job, 1, 4)
    assert clocked.issue(job, 8).units == [0]
    assert clocked.claim(job, 0, 1, "c", LEASE_MS) == Claimed(3, "spec-0")
    clocked.commit(job, 0, 1, "c", "", {"rows": 1})
    assert clocked.status(job).state is JobState.COMPLETE


def test_two_suspects_run_one_after_the_other(clocked: Ledger) -> None:
    job = new_job(clocked, 2)
    for token in ("a", "b"):
        clocked.issue(job, 8)
        die(clocked, job, 0, token)
        die(clocked, job, 1, token)
    assert len(clocked.issue(job, 8).units) == 1
    assert clocked.issue(job, 8).units == []


def test_a_unit_that_kills_every_worker_is_given_up(clocked: Ledger) -> None:
    job = new_job(clocked, 2)
    for token in ("a", "b", "c"):
        units = clocked.issue(job, 8).units
        assert 0 in units
        die(clocked, job, 0, token)
        if 1 in units:
            clocked.claim(job, 1, 1, "good", LEASE_MS)
            clocked.commit(job, 1, 1, "good", "", {"rows": 5})
    status = clocked.status(job)
    assert (status.state, status.done, status.quarantined, status.pending) == (
        JobState.QUARANTINED,
        1,
        1,
        0,
    )
    assert clocked.quarantined_units(job) == {0: "crashed"}
    assert clocked.issue(job, 8)[:2] == (0, [])


def test_a_quarantined_unit_of_a_running_job_may_still_be_committed(clocked: Ledger) -> None:
    job = new_job(clocked, 2)
    clocked.create("ld-once", {}, "{}", starts_max=1)
    clocked.add_units("ld-once", 1, 0, ["x", "y"])
    clocked.seal("ld-once", 1, 2)
    clocked.issue("ld-once", 2)
    die(clocked, "ld-once", 0, "a")
    assert clocked.claim("ld-once", 0, 1, "b", LEASE_MS) is Refusal.QUARANTINED
    assert clocked.status("ld-once").pending == 1
    assert clocked.commit("ld-once", 0, 1, "a", "r", {"rows": 3}) == 1  # its worker was alive
    status = clocked.status("ld-once")
    assert (status.pending, status.quarantined, status.done) == (1, 0, 1)
    assert clocked.status(job).pending == 2


def test_the_counts_of_a_quarantined_job_are_final(clocked: Ledger) -> None:
    clocked.create("ld-once", {}, "{}", starts_max=1)
    clocked.add_units("ld-once", 1, 0, ["x"])
    clocked.seal("ld-once", 1, 1)
    clocked.issue("ld-once", 1)
    die(clocked, "ld-once", 0, "a")
    assert clocked.status("ld-once").state is JobState.QUARANTINED
    assert clocked.commit("ld-once", 0, 1, "a", "r", {"rows": 3}) == -1
    assert clocked.status("ld-once").totals == {}


def test_sweeping_all_jobs_publishes_and_forgets_the_ended(
    clocked: Ledger, clock: Clock, client: redis.Redis
) -> None:
    running, ended = new_job(clocked, 3), new_job(clocked, 1)
    clocked.cancel(ended)
    sent: list[tuple[str, int, list[int]]] = []

    def publish(job: str, issued: Issued) -> None:
        sent.append((job, issued.epoch, issued.units))

    sweep_running(clocked, lambda job: 2, publish)
    assert sent == [(running, 1, [0, 1])]
    assert client.smembers(keys.RUNNING) == {running.encode()}

    clocked.claim(running, 0, 1, "a", LEASE_MS)
    clock.advance(LEASE_MS)
    sweep_running(clocked, lambda job: 2, publish)
    assert sent[1:] == [(running, 1, [0, 1])]  # the dead lease and the lost message

    clocked.resume(ended)
    sweep_running(clocked, lambda job: 2, publish)
    assert sent[2:] == [(ended, 2, [0])]
