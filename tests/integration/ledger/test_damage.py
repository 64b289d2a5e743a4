"""Loss of any single key of a job: its status is correct, or DAMAGED."""

import pytest
import redis

from ringhaul.ledger import keys
from ringhaul.ledger.answers import Refusal
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.job_status import DAMAGED
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobMissing, JobTaken
from ringhaul.ledger.states import JobState
from ringhaul.ledger.sweep import sweep_running
from tests.integration.ledger.conftest import new_job

LEASE_MS = 60_000
PARTS = (*keys.SINGLE, "units:0", "results:0", "rate")
HISTORY = ("samples", "sampling", "events")
#: Parts whose loss damages no report: a lost cursor costs time, lost shares of a LIMIT end the job,
#: `live` is reported as "at least", and the others belong to units that are requeued or restarted.
HARMLESS = {
    *("cursors", "ends", "limited", "live", "losses", "rate"),
    *HISTORY,
    *keys.UNDONE,
} - {"bad"}


def commit(ledger: Ledger, job: str, unit: int) -> None:
    ledger.issue(job, 10)
    claim = ledger.claim(job, unit, 1, f"t{unit}", LEASE_MS)
    assert not isinstance(claim, Refusal)
    totals = {"rows": 10, "rejected": 1, "bytes": 100}
    ledger.commit(job, unit, 1, f"t{unit}", f"result-{unit}", totals, {"7": 3}, b"extra")


def running(ledger: Ledger) -> str:
    """Create a job with two done units, one running with a cursor, one given up, others waiting."""
    job = new_job(ledger, 6, starts_max=1)
    commit(ledger, job, 0)
    commit(ledger, job, 1)
    ledger.claim(job, 2, 1, "t2", LEASE_MS)
    ledger.lost(job, 2, "t2")
    ledger.claim(job, 3, 1, "t3", LEASE_MS)
    ledger.checkpoint(job, 3, "t3", b"cursor")
    ledger.reserve(job, 3, "t3", 10, 100)
    ledger.claim(job, 4, 1, "t4", LEASE_MS)
    ledger.release(job, 4, "t4", "an error", blamed=True, delay_ms=60_000)
    return job


def cancelled(ledger: Ledger) -> str:
    job = running(ledger)
    ledger.cancel(job)
    return job


def complete(ledger: Ledger) -> str:
    job = new_job(ledger, 3)
    for unit in range(3):
        commit(ledger, job, unit)
    assert ledger.status(job).state is JobState.PARTIAL
    return job


STATES = {"running": running, "cancelled": cancelled, "complete": complete}


@pytest.mark.parametrize("state", STATES)
def test_an_intact_job_is_not_damaged(ledger: Ledger, state: str) -> None:
    job = STATES[state](ledger)
    assert ledger.find_damage(job) == []
    assert [status.damage for status in ledger.jobs()] == [()]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("state", STATES)
def test_a_lost_key_is_reported(ledger: Ledger, client: redis.Redis, state: str, part: str) -> None:
    job = STATES[state](ledger)
    if not client.delete(keys.job_key(job, part)):
        return  # the key does not exist in this state
    if part in HARMLESS:
        assert ledger.find_damage(job) == []
        assert ledger.status(job).done == len(list(ledger.results(job)))
        return
    assert ledger.find_damage(job)
    assert [status.state_name for status in ledger.jobs()] == [DAMAGED]
    with pytest.raises(JobDamaged):
        ledger.check(job)
    if state != "running":
        with pytest.raises(JobDamaged):
            ledger.resume(job)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("state", STATES)
def test_a_key_of_another_type_is_reported(
    ledger: Ledger, client: redis.Redis, state: str, part: str
) -> None:
    job = STATES[state](ledger)
    client.delete(keys.job_key(job, part))
    if part in HISTORY:
        client.set(keys.job_key(job, part), "x")
    else:
        client.rpush(keys.job_key(job, part), "x")
    other = new_job(ledger, 1)
    published: list[str] = []
    sweep_running(ledger, lambda _: 10, lambda name, issued: published.append(name))
    assert other in published  # a damaged job does not block others
    if part != "rate":
        assert ledger.find_damage(job)
        assert {s.job: s.state_name for s in ledger.jobs()}[job] == DAMAGED


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("meta", "units", "x"),
        ("meta", "left", "9" * 40),
        ("meta", "sum_tot", ""),
        ("tot", "rows", "many"),
        ("tot", "rows", "11"),
        ("lat", "7", "1.5"),
        ("results:0", "77", "result"),
        ("extras", "77", "extra"),
    ],
)
def test_garbage_in_a_key_is_reported(
    ledger: Ledger, client: redis.Redis, part: str, field: str, value: str
) -> None:
    job = complete(ledger)
    client.hset(keys.job_key(job, part), field, value)
    if (part, field, value) == ("meta", "sum_tot", ""):
        return  # like a job of an older version
    assert ledger.find_damage(job)


def test_units_lost_from_every_set_are_issued_again(ledger: Ledger, client: redis.Redis) -> None:
    for part in ("issued", "due", "lease"):
        job = new_job(ledger, 3)
        ledger.issue(job, 3)
        ledger.claim(job, 0, 1, "a", LEASE_MS)
        if part == "due":
            ledger.pause(job)
            ledger.unpause(job)
        client.delete(keys.job_key(job, part))
        ledger.sweep(job)
        issued = ledger.issue(job, 10).units
        assert issued == ([0] if part == "lease" else [1, 2]), part


def test_a_unit_that_may_start_once_does_not_start_twice(
    ledger: Ledger, client: redis.Redis
) -> None:
    job = new_job(ledger, 1, starts_max=1)
    ledger.issue(job, 1)
    ledger.claim(job, 0, 1, "a", LEASE_MS)
    client.delete(keys.job_key(job, "starts"))
    ledger.lost(job, 0, "a")
    assert ledger.status(job).state is JobState.QUARANTINED


def test_a_job_with_lost_quarantined_units_is_never_complete(
    ledger: Ledger, client: redis.Redis
) -> None:
    job = new_job(ledger, 2, starts_max=1)
    ledger.issue(job, 2)
    ledger.claim(job, 0, 1, "a", LEASE_MS)
    ledger.lost(job, 0, "a")
    client.delete(keys.job_key(job, "bad"))
    ledger.claim(job, 1, 1, "b", LEASE_MS)
    ledger.commit(job, 1, 1, "b", "result", {"rows": 1})
    assert ledger.status(job).state is JobState.FAILED


def test_a_unit_with_a_lost_spec_fails_its_job(ledger: Ledger, client: redis.Redis) -> None:
    job = new_job(ledger, 2)
    ledger.issue(job, 2)
    client.delete(keys.job_key(job, "units:0"))
    assert ledger.claim(job, 0, 1, "a", LEASE_MS) is Refusal.STOP
    assert ledger.status(job).state is JobState.FAILED


def test_the_id_of_a_partly_lost_job_cannot_be_reused(ledger: Ledger, client: redis.Redis) -> None:
    job = complete(ledger)
    client.delete(keys.job_key(job, "meta"))
    with pytest.raises(JobDamaged, match="meta"):
        ledger.status(job)
    with pytest.raises(JobTaken, match="lost part"):
        ledger.create(job, {}, "{}")


def test_no_operation_recreates_a_lost_job(ledger: Ledger, client: redis.Redis) -> None:
    job = running(ledger)
    client.flushall()
    assert ledger.renew(job, 3, "t3", LEASE_MS).lease.value == "GONE"
    assert ledger.checkpoint(job, 3, "t3", b"x").value == "GONE"
    assert ledger.commit(job, 3, 1, "t3", "result", {"rows": 1}).value == -1
    assert client.dbsize() == 0
    with pytest.raises(JobMissing):
        ledger.status(job)


def test_all_keys_of_a_job_expire_in_the_same_millisecond(
    ledger: Ledger, client: redis.Redis
) -> None:
    job = running(ledger)
    ledger.cancel(job)
    client.expire(keys.job_key(job, "meta"), 1000)
    ledger.commit(job, 3, 1, "t3", "result", {"rows": 1}, {"7": 1}, b"extra")
    written = ("meta", "done", "tot", "lat", "extras", "results:0")
    ends = {client.pexpiretime(keys.job_key(job, part)) for part in written}
    assert len(ends) == 1 and ends.pop() > 0
