"""Sums over all jobs for metrics, and how long a job has made no progress."""

from dataclasses import replace

import pytest
import redis

from ringhaul.ledger import keys
from ringhaul.ledger.answers import Commit, Lease
from ringhaul.ledger.connection import connect
from ringhaul.ledger.history import EventKind, History
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.schedules import ScheduleBook
from ringhaul.ledger.totals import KindTotals, count_job_states, read_totals
from ringhaul.ledger.workers import Workers
from tests.integration.ledger.conftest import Clock, Server, new_job


def create(ledger: Ledger, job: str, kind: str, units: int) -> None:
    ledger.create(job, {"kind": kind}, "{}")
    ledger.add_units(job, 1, 0, [f"spec-{unit}" for unit in range(units)])
    ledger.seal(job, 1, units)


def claim(ledger: Ledger, job: str, unit: int) -> str:
    """Claim a unit and return its token."""
    token = f"t{unit}@celery@host1:7"
    ledger.issue(job, 1000)
    ledger.claim(job, unit, 1, token, 60_000)
    return token


def commit(ledger: Ledger, job: str, unit: int, **totals: int) -> Commit:
    token = claim(ledger, job, unit)
    return ledger.commit(job, unit, 1, token, "r", totals, {"40": 3, "41": 1})


def test_sums_of_each_kind_outlive_their_jobs(ledger: Ledger, client: redis.Redis) -> None:
    create(ledger, "ld-1", "load", 2)
    create(ledger, "ld-2", "load", 1)
    create(ledger, "un-1", "unload", 1)
    commit(ledger, "ld-1", 0, rows=10, rejected=2, bytes=100, retries=1, records=12)
    commit(ledger, "ld-1", 1, rows=5, rejected=0, bytes=50, retries=0)
    # A repeated commit counts nothing twice
    assert ledger.commit("ld-1", 1, 1, "other", "r", {"rows": 5}) is Commit.REPEATED
    commit(ledger, "ld-2", 0, rows=1, bytes=10)
    commit(ledger, "un-1", 0, rows=7, bytes=70)
    load = KindTotals(
        figures={
            "created": 2,
            "units": 3,
            "rows": 16,
            "rejected": 2,
            "bytes": 160,
            "retries": 1,
        },
        ended={"PARTIAL": 1, "COMPLETE": 1},
        latencies={40: 9, 41: 3},
    )
    found = read_totals(ledger.caller)
    assert list(found) == [JobKind.LOAD, JobKind.UNLOAD]
    assert found[JobKind.LOAD] == load
    assert found[JobKind.UNLOAD].ended == {"COMPLETE": 1}
    # They do not get smaller when a job is forgotten
    client.delete(*client.keys("ringhaul:{ld-1}:*"))
    assert read_totals(ledger.caller)[JobKind.LOAD] == load
    assert client.ttl(keys.TOTALS) == -1


def test_units_that_fail_are_lost_or_given_up(ledger: Ledger) -> None:
    create(ledger, "ld-1", "load", 2)
    token = claim(ledger, "ld-1", 0)
    ledger.release("ld-1", 0, token, "no replica answers", blamed=True)
    token = claim(ledger, "ld-1", 0)
    ledger.release("ld-1", 0, token)  # without blame
    create(ledger, "ld-2", "load", 1)
    for _ in range(3):  # starts_max
        ledger.lost("ld-2", 0, claim(ledger, "ld-2", 0))
    history = History(ledger.caller)
    history.note("ld-1", EventKind.NODE_REST, text="127.0.0.1")
    history.note("ld-1", EventKind.NODE_REST, text="127.0.0.1")
    history.note("ld-1", EventKind.WINDOW_SHRUNK)
    found = read_totals(ledger.caller)[JobKind.LOAD]
    assert found.ended == {"QUARANTINED": 1}
    assert found.figures == {
        "created": 2,
        "failed": 1,
        "lost": 3,
        "quarantined": 1,
        "backoffs": 2,
        "shrinks": 1,
    }


def test_what_another_version_adds_up_is_left_out(ledger: Ledger, client: redis.Redis) -> None:
    fields = {"load:rows": 1, "load:later": 2, "weave:rows": 3, "load:latency:x": 4, b"\xff": 5}
    client.hset(keys.TOTALS, mapping=fields)
    assert read_totals(ledger.caller) == {JobKind.LOAD: KindTotals(figures={"rows": 1})}


def test_sums_that_cannot_be_kept_keep_no_unit_from_its_commit(
    ledger: Ledger, client: redis.Redis
) -> None:
    client.set(keys.TOTALS, "text")
    create(ledger, "ld-1", "load", 1)
    assert commit(ledger, "ld-1", 0, rows=1) is Commit.COUNTED
    assert ledger.status("ld-1").state_name == "COMPLETE"


def test_jobs_by_state(ledger: Ledger, client: redis.Redis) -> None:
    for number in range(3):
        create(ledger, f"ld-{number}", "load", 1)
    commit(ledger, "ld-0", 0, rows=1)
    ledger.pause("ld-1")
    client.zadd(keys.JOBS, {"ld-gone": 1})
    client.set(keys.job_key("ld-odd", "meta"), "text")
    client.zadd(keys.JOBS, {"ld-odd": 2})
    expected = {"COMPLETE": 1, "PAUSED": 1, "RUNNING": 1}
    assert count_job_states(ledger.caller) == expected


def test_how_long_a_job_stands_still(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 3)

    def still_s() -> float:
        return replace(clocked.status(job), now_ms=clock.now_ms).still_s

    clock.advance(5000)
    assert still_s() == 5
    units = clocked.issue(job, 2).units
    assert clocked.status(job).oldest_issued_ms == clock.now_ms
    clocked.claim(job, units[0], 1, "t0", 600_000)
    assert still_s() == 5, "a claim alone is no progress"
    assert clocked.status(job).oldest_issued_ms == clock.now_ms
    clocked.renew(job, units[0], "t0", 600_000, Live(rows=10, in_flight=3))
    assert still_s() == 0
    clock.advance(7000)
    assert clocked.renew(job, units[0], "t0", 600_000, Live(rows=10, in_flight=9)).lease is Lease.OK
    assert still_s() == 7, "the same rows are no progress"
    clocked.commit(job, units[0], 1, "t0", "r", {"rows": 10})
    assert still_s() == 0
    clock.advance(3000)
    clocked.pause(job)
    assert still_s() == 0
    clock.advance(3000)
    clocked.unpause(job)
    assert still_s() == 0
    clock.advance(1000)
    assert still_s() == 1
    clocked.cancel(job)
    clock.advance(1000)
    assert still_s() == 0
    clocked.resume(job)
    clock.advance(2000)
    assert still_s() == 2


@pytest.fixture
def watcher(ledger: Ledger, client: redis.Redis, shared_server: Server) -> Ledger:
    """A ledger as a user who may only read."""
    rules = {"keys": ["%R~ringhaul:*"], "categories": ["+@all", "-@admin", "-@dangerous"]}
    client.acl_setuser("watcher", enabled=True, nopass=True, commands=["+info"], **rules)
    url = shared_server.url.replace("redis://", "redis://watcher:any@")
    return Ledger(connect(url), patience_ms=1000)


def test_a_user_who_may_only_read_can_watch(ledger: Ledger, watcher: Ledger) -> None:
    create(ledger, "ld-1", "load", 1)
    try:
        assert [status.job for status in watcher.unended()] == ["ld-1"]
        assert Workers(watcher.caller).alive() == []
        assert count_job_states(watcher.caller) == {"RUNNING": 1}
        assert read_totals(watcher.caller)[JobKind.LOAD].figures == {"created": 1}
        assert ScheduleBook(watcher.caller).standing("nightly").settled_ms is None
    finally:
        ledger.caller.client.acl_deluser("watcher")
