"""Control of a running job: pause, limits, shares, and its visible state."""

from __future__ import annotations

import pytest
import redis

from ringhaul.ledger import keys
from ringhaul.ledger.answers import Claimed, Commit, Lease, Refusal
from ringhaul.ledger.fleet import OpenJob, look_at_fleet, look_at_slots
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.pace import NO_LIMITS, NO_PACE, Limits, Pace
from ringhaul.ledger.reading import JobMissing
from ringhaul.ledger.states import JobState
from ringhaul.ledger.workers import Worker, Workers, pack_worker
from tests.integration.ledger.conftest import Clock, new_job

LEASE_MS = 60_000


def test_a_paused_job_issues_nothing_and_takes_back_queued_units(ledger: Ledger) -> None:
    # Given a job with a running unit and two in the queue
    job = new_job(ledger, 4)
    assert ledger.issue(job, 3).units == [0, 1, 2]
    ledger.claim(job, 0, 1, "a", LEASE_MS)
    # When it is paused, twice
    assert ledger.pause(job) is ledger.pause(job) is JobState.RUNNING
    # Then queued messages get no unit, and no more units are issued
    assert ledger.claim(job, 1, 1, "b", LEASE_MS) is Refusal.PAUSED
    assert ledger.issue(job, 8).units == []
    status = ledger.status(job)
    assert (status.state_name, status.state, status.issued) == ("PAUSED", JobState.RUNNING, 0)
    # And the running unit learns of it, and is released without blame
    assert ledger.renew(job, 0, "a", LEASE_MS, Live(rows=7)).lease is Lease.PAUSE
    assert ledger.release(job, 0, "a") is Lease.OK
    assert ledger.status(job).live == Live()
    # When it continues, then each of its units is issued once more, as if for the first time
    assert ledger.unpause(job) is True
    assert ledger.unpause(job) is False
    assert sorted(ledger.issue(job, 8).units) == [0, 1, 2, 3]
    assert ledger.claim(job, 0, 1, "c", LEASE_MS) == Claimed(1, "spec-0")
    assert ledger.status(job).state_name == "RUNNING"


def test_a_unit_that_cannot_be_released_is_finished_in_a_pause(ledger: Ledger) -> None:
    job = new_job(ledger, 1)
    ledger.issue(job, 1)
    ledger.claim(job, 0, 1, "a", LEASE_MS)
    ledger.pause(job)
    assert ledger.checkpoint(job, 0, "a", b"half") is Lease.OK
    assert ledger.commit(job, 0, 1, "a", "r", {"rows": 1}) is Commit.COUNTED
    # It was the last one: the job is over, and no longer paused
    status = ledger.status(job)
    assert (status.state_name, status.paused) == ("COMPLETE", False)


def test_a_claim_whose_answer_was_lost_is_the_same_attempt_in_a_pause(ledger: Ledger) -> None:
    job = new_job(ledger, 1)
    ledger.issue(job, 1)
    claimed = ledger.claim(job, 0, 1, "a", LEASE_MS)
    ledger.pause(job)
    assert ledger.claim(job, 0, 1, "a", LEASE_MS) == claimed


def test_a_worker_that_dies_in_a_pause_is_noticed(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 1)
    clocked.issue(job, 1)
    clocked.claim(job, 0, 1, "a", LEASE_MS)
    clocked.pause(job)
    clock.advance(LEASE_MS)
    assert clocked.sweep(job).expired == 1
    clocked.unpause(job)
    assert clocked.issue(job, 1).units == [0]
    assert clocked.claim(job, 0, 1, "b", LEASE_MS) == Claimed(2, "spec-0")


def test_a_paused_job_can_be_cancelled_and_resumed(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 2)
    clocked.issue(job, 1)
    clocked.claim(job, 0, 1, "a", LEASE_MS)
    clock.advance(10_000)
    clocked.pause(job)
    clock.advance(5_000)
    assert clocked.status(job).worked_s == 10.0
    clock.advance(15_000)
    assert clocked.cancel(job) is JobState.CANCELLED
    status = clocked.status(job)
    assert (status.state_name, status.elapsed_s, status.worked_s) == ("CANCELLED", 30.0, 10.0)
    assert clocked.pause(job) is JobState.CANCELLED
    clocked.resume(job)
    assert clocked.status(job).state_name == "RUNNING"
    assert clocked.issue(job, 4).units == [0, 1]


def test_the_time_between_an_end_and_its_resume_does_not_count(
    clocked: Ledger, clock: Clock
) -> None:
    # Given a job that ran for 10 s, 4 of them paused
    job = new_job(clocked, 3)
    clocked.issue(job, 1)
    clocked.claim(job, 0, 1, "a", LEASE_MS)
    clock.advance(6_000)
    clocked.pause(job)
    clock.advance(4_000)
    clocked.cancel(job)
    assert _times(clocked, job) == (10.0, 6.0)
    for unit, epoch in enumerate((2, 3)):
        # When it is resumed after a night, and fails after 5 s
        clock.advance(8 * 3_600_000)
        clocked.resume(job)
        clocked.issue(job, 3)
        clocked.claim(job, unit, epoch, "b", LEASE_MS)
        clock.advance(5_000)
        clocked.commit(job, unit, epoch, "b", "", {"rows": 1})
        clocked.fail(job, "again")
        # Then these 5 s are added, without the night
        assert _times(clocked, job) == (15.0 + 5 * unit, 11.0 + 5 * unit)
    assert "idle_ms" not in clocked.status(job).labels


def test_a_job_that_ended_before_its_first_claim_has_no_start(
    clocked: Ledger, clock: Clock
) -> None:
    job = new_job(clocked, 1)
    clocked.cancel(job)
    clock.advance(3_600_000)
    clocked.resume(job)
    clocked.issue(job, 1)
    clocked.claim(job, 0, 2, "a", LEASE_MS)
    clock.advance(7_000)
    clocked.cancel(job)
    assert _times(clocked, job) == (7.0, 7.0)


def test_a_pause_before_the_first_claim_does_not_count(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 1)
    clocked.pause(job)
    clock.advance(3_600_000)
    clocked.unpause(job)
    clocked.issue(job, 1)
    clocked.claim(job, 0, 1, "a", LEASE_MS)
    clock.advance(7_000)
    clocked.pause(job)
    clock.advance(5_000)
    clocked.cancel(job)
    assert _times(clocked, job) == (12.0, 7.0)


def _times(ledger: Ledger, job: str) -> tuple[float, float]:
    status = ledger.status(job)
    return status.elapsed_s, status.worked_s


def test_an_unknown_job_cannot_be_controlled(ledger: Ledger) -> None:
    for control in (ledger.pause, ledger.unpause, lambda job: ledger.throttle(job, NO_PACE)):
        with pytest.raises(JobMissing):
            control("ld-none")  # type: ignore[operator]


def test_one_command_at_a_time_writes_the_end_and_only_once(clocked: Ledger, clock: Clock) -> None:
    def acquire(token: str, leave_ms: int = 0) -> int:
        return clocked.may_publish(job, token, lease_ms=60_000, leave_ms=leave_ms)

    # Given a job that runs, then one that is over
    job = new_job(clocked, 1)
    assert acquire("command") == -1
    clocked.cancel(job)
    # A watching command leaves it to the job's command for a while
    assert acquire("watch", 5000) == 5000
    clock.advance(1000)
    assert acquire("watch", 5000) == 4000
    assert (acquire("command"), acquire("command")) == (0, 0)
    clock.advance(5000)
    assert (acquire("watch", 5000), acquire("other")) == (55_000, 55_000)
    # Only its holder releases it
    clocked.not_published(job, "watch")
    assert acquire("watch") == 55_000
    clocked.not_published(job, "command")
    assert acquire("watch", 5000) == 0
    # If the holder dies while it writes, the next one takes it
    clock.advance(60_000)
    assert acquire("other") == 0
    # Once written, nothing can acquire it again
    clocked.note_published(job)
    assert (acquire("command"), acquire("other"), acquire("watch", 5000)) == (-1, -1, -1)
    clock.advance(100_000)
    assert acquire("watch", 5000) == -1
    status = clocked.status(job)
    assert (status.published, status.labels.keys()) == (True, {"verb"})


def test_limits_come_with_the_claim_and_with_each_renewal(ledger: Ledger) -> None:
    job = new_job(ledger, 3, pace=Pace(limits=Limits(rows_per_s=500)))
    ledger.issue(job, 3)
    assert ledger.claim(job, 0, 1, "a", LEASE_MS) == Claimed(1, "spec-0", Limits(rows_per_s=500))
    assert ledger.throttle(job, Pace(limits=Limits(0, 10, 9))) is JobState.RUNNING
    # Running units share the requests that may be in flight
    assert ledger.renew(job, 0, "a", LEASE_MS) == (Lease.OK, Limits(0, 10, 9))
    assert ledger.claim(job, 1, 1, "b", LEASE_MS) == Claimed(1, "spec-1", Limits(0, 10, 4))
    assert ledger.renew(job, 0, "a", LEASE_MS).limits == Limits(0, 10, 4)
    ledger.throttle(job, NO_PACE)
    assert ledger.renew(job, 0, "a", LEASE_MS).limits == NO_LIMITS
    # A finished job keeps its limits, and a resume starts with them
    ledger.throttle(job, Pace(limits=Limits(7)))
    ledger.cancel(job)
    assert ledger.throttle(job, NO_PACE) is JobState.CANCELLED
    ledger.resume(job)
    assert ledger.status(job).pace == Pace(limits=Limits(7))


def test_hourly_limits_use_the_servers_clock(clocked: Ledger, clock: Clock) -> None:
    # The clock stands at 08:53 UTC
    job = new_job(clocked, 1, pace=Pace.of(Limits(5), ("08:00-08:54",)))
    clocked.issue(job, 1)
    claimed = clocked.claim(job, 0, 1, "a", LEASE_MS)
    assert isinstance(claimed, Claimed) and claimed.limits == Limits(5)
    clock.advance(60_000)
    assert clocked.renew(job, 0, "a", LEASE_MS).limits == NO_LIMITS
    assert clocked.status(job).pace.between


def test_the_fleet_lists_living_workers_and_open_units(clocked: Ledger, clock: Clock) -> None:
    workers = Workers(clocked.caller)
    one = Worker("host1", 10, 4, ("ringhaul.load", "ringhaul.load@dc:1"))
    workers.heartbeat(one, 20_000)
    workers.heartbeat(Worker("host2", 11, 8), 5_000)
    clock.advance(6_000)
    clocked.create("ld-0", {"queue": "ringhaul.load"}, "{}", priority="high")
    clocked.add_units("ld-0", 1, 0, ["a", "b"])
    clocked.throttle("ld-0", Pace(limits=Limits(in_flight=3)))
    paused, over, other = (new_job(clocked, 5) for _ in range(3))
    clocked.pause(paused)
    clocked.cancel(over)
    fleet = look_at_fleet(clocked.caller)
    assert fleet.workers == [one]
    assert fleet.jobs == {
        "ld-0": OpenJob("ringhaul.load", "high", 2, Limits(in_flight=3)),
        other: OpenJob("", "normal", 5, NO_LIMITS),
    }


def test_workers_are_added_up_by_their_queues(
    clocked: Ledger, clock: Clock, client: redis.Redis
) -> None:
    workers = Workers(clocked.caller)
    both = ("ringhaul.load", "ringhaul.load@dc:1")
    for i in range(300):
        workers.heartbeat(Worker(f"host{i}", i, 4, both), 20_000)
    workers.heartbeat(Worker("alone", 1, 3, ("ringhaul.load",)), 20_000)
    job = new_job(clocked, 5)

    def slots() -> dict[tuple[str, ...], int]:
        fleet = look_at_slots(clocked.caller)
        assert fleet.jobs == {job: OpenJob("", "normal", 5, NO_LIMITS)}
        return {worker.queues: worker.slots for worker in fleet.workers}

    assert slots() == {both: 1200, ("ringhaul.load",): 3}
    # The sums are kept, until a worker comes or leaves, or for a second
    client.zrem(keys.WORKERS, pack_worker(Worker("host0", 0, 4, both)))
    assert slots()[both] == 1200
    workers.heartbeat(Worker("host1", 1, 4, both), 20_000)
    assert slots()[both] == 1200
    workers.heartbeat(Worker("new", 1, 5, ("ringhaul.load",)), 20_000)
    assert slots() == {both: 1196, ("ringhaul.load",): 8}
    workers.leave(Worker("host1", 1, 4, both))
    assert slots()[both] == 1192
    clock.advance(20_000)
    workers.heartbeat(Worker("alone", 1, 3, ("ringhaul.load",)), 20_000)
    assert slots() == {("ringhaul.load",): 3}
    clock.advance(20_000)
    assert slots() == {}
    # Other values in their place do no harm
    for damage in ("SET", "x"), ("SET", ""), ("HSET", "a", "b"):
        client.delete(keys.SLOTS)
        client.execute_command(damage[0], keys.SLOTS, *damage[1:])
        workers.heartbeat(Worker("alone", 1, 3, ("ringhaul.load",)), 20_000)
        assert slots() == {("ringhaul.load",): 3}


def test_running_units_are_listed_by_their_age(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 3)
    clocked.issue(job, 3)
    for unit in range(3):
        clocked.claim(job, unit, 1, f"task{unit}@w{unit}@host{unit}:4{unit}", LEASE_MS)
        clock.advance(1_000)
    clocked.renew(job, 1, "task1@w1@host1:41", LEASE_MS, Live(rows=5))
    clocked.release(job, 0, "task0@w0@host0:40")
    slowest, last = clocked.units_at_work(job)
    assert (slowest.unit, slowest.host, slowest.worker) == (1, "host1", "w1@host1:41")
    assert (slowest.attempt, slowest.live) == (1, Live(rows=5))
    assert last.unit == 2
    assert slowest.seconds - last.seconds == pytest.approx(1.0)
    assert [unit.unit for unit in clocked.units_at_work(job, limit=1)] == [1]
    assert [status.job for status in clocked.unended()] == [job]
    clocked.cancel(job)
    assert clocked.unended() == []


def test_open_units_of_a_paused_job_do_not_scale_workers(
    ledger: Ledger, client: redis.Redis
) -> None:
    job = new_job(ledger, 3)
    assert client.scard("ringhaul:open") == 3
    ledger.pause(job)
    assert client.scard("ringhaul:open") == 0
    ledger.unpause(job)
    assert client.scard("ringhaul:open") == 3
