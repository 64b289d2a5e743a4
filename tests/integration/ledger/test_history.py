"""The history of a job: the events of its life, and samples of its figures; both bounded."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
import redis

from ringhaul.dataplane.latency import percentile_ms
from ringhaul.errors import UsageError
from ringhaul.ledger import keys
from ringhaul.ledger.history import Crew, EventKind, History, JobEvent, Sample
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.pace import Limits, Pace
from ringhaul.ledger.scripts import read_scripts
from ringhaul.ledger.states import JobState
from tests.integration.ledger.conftest import Clock, new_job

LEASE_MS = 60_000
TOKEN = "0011223344556677@celery@host1:4711"
OTHER = "8899aabbccddeeff@celery@host2:12"


def events(ledger: Ledger, job: str) -> list[tuple[str, str, str, int | None]]:
    found = History(ledger.caller).events(job)
    return [(event.kind.value, event.text, event.by, event.unit) for event in found]


def samples(ledger: Ledger, job: str) -> list[Sample]:
    return History(ledger.caller).samples(job)


def take(ledger: Ledger, job: str, workers: int = 2, *hosts: str, at_ms: int = 0) -> int:
    """As a keeper that sees these workers; `at_ms`: then."""
    seconds, micros = ledger.caller.client.time()
    seen_ms = at_ms or seconds * 1000 + micros // 1000
    return History(ledger.caller).sample(
        job, Crew(seen_ms=seen_ms, workers=workers, hosts=frozenset(hosts))
    )


def commit(ledger: Ledger, job: str, unit: int, rows: int = 10, token: str = TOKEN) -> None:
    ledger.issue(job, 100)
    ledger.claim(job, unit, ledger.status(job).epoch, token, LEASE_MS)
    totals = {"rows": rows, "rejected": 1, "bytes": 100, "retries": 2}
    epoch = ledger.status(job).epoch
    ledger.commit(job, unit, epoch, token, "r", totals, {"80": 9, "120": 1}, b"x")


def test_the_events_of_a_life(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 3)
    clocked.issue(job, 3)
    clocked.claim(job, 1, 1, TOKEN, LEASE_MS)
    clocked.pause(job, by="page")
    clocked.pause(job, by="page")
    clocked.release(job, 1, TOKEN)  # as every unit at a pause
    clocked.unpause(job, by="page")
    clocked.unpause(job)
    clocked.throttle(job, Pace(limits=Limits(1000)), by="schedule nightly")
    clocked.throttle(job, Pace(limits=Limits(1000)), by="schedule nightly")
    clocked.throttle(job, Pace())
    assert clocked.priority(job, "high") is JobState.RUNNING
    clocked.issue(job, 3)
    clocked.claim(job, 1, 1, TOKEN, LEASE_MS)
    clocked.release(job, 1, TOKEN, "no replica answers", blamed=True)
    clocked.issue(job, 3)
    clocked.claim(job, 1, 1, OTHER, LEASE_MS)
    clocked.lost(job, 1, OTHER)
    clocked.issue(job, 3)
    clocked.claim(job, 1, 1, OTHER, LEASE_MS)
    clock.advance(LEASE_MS)
    clocked.sweep(job)
    clocked.claim(job, 0, 1, TOKEN, LEASE_MS)
    clocked.release(job, 0, TOKEN)
    clocked.cancel(job, by="page")
    clocked.cancel(job)
    clocked.resume(job)
    for unit in range(3):
        commit(clocked, job, unit)
    assert events(clocked, job) == [
        ("created", "", "command", None),
        ("split", "3 units", "", None),
        ("first unit", "", "host1", 1),
        ("paused", "", "page", None),
        ("resumed", "", "page", None),
        ("throttled", "1,000 rows/s", "schedule nightly", None),
        ("throttled", "no limits", "command", None),
        ("priority", "high", "command", None),
        ("unit retried", "no replica answers", "host1", 1),
        ("unit retried", "its process died", "host2", 1),
        ("unit retried", "its lease expired", "host2", 1),
        ("unit released", "", "host1", 0),
        ("ended", "CANCELLED", "page", None),
        ("resumed", "from CANCELLED", "command", None),
        ("ended", "PARTIAL", "", None),
    ]
    with pytest.raises(UsageError, match="no priority"):
        clocked.priority(job, "highest")


def test_a_unit_that_is_given_up_and_ends_that_have_a_reason(clocked: Ledger) -> None:
    job = new_job(clocked, 1, starts_max=1)
    clocked.issue(job, 1)
    clocked.claim(job, 0, 1, TOKEN, LEASE_MS)
    clocked.lost(job, 0, TOKEN)
    assert events(clocked, job)[-2:] == [
        ("unit given up", "its process died", "host1", 0),
        ("ended", "QUARANTINED", "", None),
    ]
    job = new_job(clocked, 1, starts_max=1)
    clocked.issue(job, 1)
    clocked.claim(job, 0, 1, TOKEN, LEASE_MS)
    clocked.lost(job, 0, TOKEN, fatal="it may have been applied")
    assert events(clocked, job)[-2:] == [
        ("unit given up", "its process died", "host1", 0),
        ("ended", "FAILED: it may have been applied", "host1", 0),
    ]
    job = new_job(clocked, 1)
    clocked.issue(job, 1)
    clocked.claim(job, 0, 1, TOKEN, LEASE_MS)
    clocked.stop(job, 0, TOKEN, Live(rejected=9), b"rejects")
    assert events(clocked, job)[-1] == (
        "ended",
        "STOPPED: more records were rejected than allowed",
        "host1",
        0,
    )
    assert clocked.status(job).last_error is None


def test_equal_events_are_counted_in_one(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 40)
    clocked.issue(job, 40)
    first_ms = clock.now_ms
    for unit, token in ((0, TOKEN), (1, TOKEN), (2, OTHER)):
        clocked.claim(job, unit, 1, token, LEASE_MS)
        clocked.release(job, unit, token, "10.0.0.1 is down", blamed=True, delay_ms=LEASE_MS)
        clocked.claim(job, 9, 1, token, LEASE_MS)
        clocked.release(job, 9, token, f"error {unit}", blamed=True)
        clocked.issue(job, 40)
        clock.advance(1000)
    found = [e for e in History(clocked.caller).events(job) if e.kind is EventKind.RETRIED]
    assert found[0] == JobEvent(
        at_ms=first_ms,
        kind=EventKind.RETRIED,
        text="10.0.0.1 is down",
        count=3,
        last_ms=first_ms + 2000,
    )
    assert [event.text for event in found[1:]] == ["error 0", "error 1", "error 2"]
    # A pause stays between what was before and what is after it.
    clocked.pause(job)
    clocked.unpause(job)
    clocked.issue(job, 40)
    clocked.claim(job, 3, 1, TOKEN, LEASE_MS)
    clocked.release(job, 3, TOKEN, "10.0.0.1 is down", blamed=True)
    assert [event[0] for event in events(clocked, job)][-3:] == [
        "paused",
        "resumed",
        "unit retried",
    ]


def test_events_are_bounded_and_the_first_stay(ledger: Ledger, client: redis.Redis) -> None:
    job = new_job(ledger, 1)
    history = History(ledger.caller)
    reason = "ä" * 300
    for number in range(10_000):
        history.note(job, EventKind.NODE_REST, text=f"{number} {reason}", by="h" * 300, unit=number)
    found = history.events(job)
    assert len(found) == keys.EVENTS_MAX
    numbers = [-1 if event.unit is None else event.unit for event in found]
    first = keys.EVENTS_FIRST - 2
    assert [event.kind for event in found[:2]] == [EventKind.CREATED, EventKind.SPLIT]
    assert numbers[2 : keys.EVENTS_FIRST] == list(range(first))
    assert numbers[keys.EVENTS_FIRST :] == list(
        range(10_000 - keys.EVENTS_MAX + keys.EVENTS_FIRST, 10_000)
    )
    assert found[-1].text == f"9999 {reason}"[:102]  # characters are whole
    held = client.memory_usage(keys.job_key(job, "events"), samples=0)
    assert held is not None and held < 250_000


def test_events_of_a_job_that_does_not_run_are_dropped(ledger: Ledger, client: redis.Redis) -> None:
    history = History(ledger.caller)
    history.note("ld-gone", EventKind.NODE_REST, text="late")
    assert client.keys("ringhaul:{ld-gone}*") == []
    job = new_job(ledger, 1)
    ledger.cancel(job)
    history.note(job, EventKind.NODE_REST, text="late")
    assert events(ledger, job)[-1][0] == "ended"


def test_a_short_job_has_its_first_and_its_last_sample(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 2)
    started_ms = clock.now_ms
    commit(clocked, job, 0)
    clock.advance(3000)
    commit(clocked, job, 1)
    first, last = samples(clocked, job)
    assert first == Sample(at_ms=started_ms, units=2, leased=1, workers=1, hosts=1)
    assert last == Sample(
        at_ms=started_ms + 3000,
        rows=20,
        rejected=2,
        bytes=200,
        retries=4,
        units=2,
        units_done=2,
        p50_ms=percentile_ms({80: 18, 120: 2}, 0.5),
        p99_ms=percentile_ms({80: 18, 120: 2}, 0.99),
        workers=1,
        hosts=1,
    )


def test_samples_of_two_keepers_at_once(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 9)
    commit(clocked, job, 0)
    started_ms = clock.now_ms
    clocked.issue(job, 9)
    clocked.claim(job, 1, 1, OTHER, LEASE_MS)
    with ThreadPoolExecutor(4) as keepers:
        for second in range(30):
            clock.advance(1000)
            clocked.renew(job, 1, OTHER, LEASE_MS, Live(rows=second, bytes=9, in_flight=64))
            seen = [(clocked, job, 3, "a", "b")] * 4
            list(keepers.map(lambda words: take(*words, at_ms=clock.now_ms), seen))
    found = samples(clocked, job)
    assert [sample.at_ms - started_ms for sample in found] == [0, 9000, 18000, 27000]
    # Live figures count, as in `status`.
    assert [sample.rows for sample in found] == [0, 18, 27, 36]
    assert found[-1].in_flight == 64 and found[-1].leased == 1
    assert (found[-1].workers, found[-1].hosts) == (3, 2)
    # Latencies are of what was answered since the sample before.
    assert found[1].p50_ms == percentile_ms({80: 9, 120: 1}, 0.5)
    assert found[2].p50_ms is None
    clocked.cancel(job)
    status = clocked.status(job)
    last = samples(clocked, job)[-1]
    assert (last.rows, last.units_done, last.in_flight) == (10, 1, 0)
    # What workers had finished by then counts, and the series ends with it.
    clock.advance(500)
    clocked.commit(job, 1, 1, OTHER, "r", {"rows": 40, "retries": 7})
    ends = samples(clocked, job)
    assert len(ends) == 5 and ends[-1].rows == 50 and ends[-1].retries == 9
    assert clocked.status(job).totals["rows"] == 50 > status.totals["rows"]
    assert take(clocked, job) == -1


def test_samples_of_a_day_are_bounded_and_spread_evenly(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 2)
    commit(clocked, job, 0, 0)
    clocked.issue(job, 9)
    clocked.claim(job, 1, 1, OTHER, LEASE_MS)
    started_ms = clock.now_ms
    for second in range(0, 24 * 3600, 10):
        clock.advance(10_000)
        clocked.renew(job, 1, OTHER, LEASE_MS, Live(rows=second))
        wait_ms = take(clocked, job, at_ms=clock.now_ms)
    found = samples(clocked, job)
    assert keys.SAMPLES_MAX // 2 <= len(found) <= keys.SAMPLES_MAX
    assert found[0].at_ms == started_ms, "the first stays"
    assert clock.now_ms - found[-1].at_ms < 320_000
    pauses = {after.at_ms - before.at_ms for before, after in pairwise(found)}
    assert max(pauses) <= 2 * min(pauses)
    assert 0 < wait_ms <= 320_000
    clocked.renew(job, 1, OTHER, LEASE_MS, Live(rows=90_000))
    commit(clocked, job, 1, 90_000, OTHER)
    assert samples(clocked, job)[-1].rows == 90_000


def test_a_job_that_stands_still_keeps_two_samples_of_that(clocked: Ledger, clock: Clock) -> None:
    job = new_job(clocked, 2)
    commit(clocked, job, 0)
    clocked.pause(job)
    history = History(clocked.caller)
    for _ in range(100):
        clock.advance(10_000)
        history.sample(job, None)
    found = samples(clocked, job)
    assert [sample.rows for sample in found] == [0, 10, 10, 10]
    assert found[-1].at_ms == clock.now_ms
    # Latencies were of the first of them.
    assert [sample.p50_ms is None for sample in found] == [True, False, True, True]


def test_hosts_that_join_and_leave(ledger: Ledger) -> None:
    job = new_job(ledger, 1)

    def seen(at_ms: int, *hosts: str) -> list[tuple[str, str, str, int | None]]:
        before = len(events(ledger, job))
        take(ledger, job, len(hosts), *hosts, at_ms=at_ms)
        return events(ledger, job)[before:]

    assert seen(1000, "a", "b") == [
        ("host joined", "", "a", None),
        ("host joined", "", "b", None),
    ]
    assert seen(2000, "b", "a") == []
    assert seen(3000, "b", "c") == [("host lost", "", "a", None), ("host joined", "", "c", None)]
    assert seen(2500, "a", "b") == [], "a keeper that looked earlier"
    assert seen(4000, *(f"h{number}" for number in range(5)), "b", "c") == [
        ("host joined", "5 hosts: h0, h1, h2, h3, h4", "", None)
    ]


def test_latencies_are_those_of_the_python_histogram(clocked: Ledger, clock: Clock) -> None:
    luck = random.Random(7)
    job = new_job(clocked, 99)
    for unit in range(20):
        counts = {luck.randrange(230): luck.randrange(1, 1000) for _ in range(luck.randrange(1, 9))}
        clocked.issue(job, 99)
        clocked.claim(job, unit, 1, TOKEN, LEASE_MS)
        latencies = {str(bucket): count for bucket, count in counts.items()}
        clocked.commit(job, unit, 1, TOKEN, "r", {"rows": 1}, latencies)
        clock.advance(20_000)
        take(clocked, job, at_ms=clock.now_ms)
        last = samples(clocked, job)[-1]
        for share, found in ((0.5, last.p50_ms), (0.99, last.p99_ms)):
            assert found == pytest.approx(percentile_ms(counts, share), abs=0.001)


def test_a_history_that_redis_lost_holds_up_no_job(ledger: Ledger, client: redis.Redis) -> None:
    job = new_job(ledger, 2)
    for part in ("samples", "sampling", "events"):
        client.set(keys.job_key(job, part), "x")
    commit(ledger, job, 0)
    assert take(ledger, job, 1, "a") > 0
    ledger.pause(job)
    for part in ("samples", "sampling", "events"):
        client.delete(keys.job_key(job, part))
    ledger.unpause(job)
    commit(ledger, job, 1)
    assert [kind for kind, *_ in events(ledger, job)] == ["resumed", "ended"]
    assert samples(ledger, job)[-1].rows == 20


def test_what_is_left_of_a_history_is_no_job(ledger: Ledger, client: redis.Redis) -> None:
    job = new_job(ledger, 1)
    ledger.cancel(job)
    for key in client.keys(f"ringhaul:{{{job}}}:*"):
        if key.decode().split(":")[2] not in ("samples", "sampling", "events"):
            client.delete(key)
    assert ledger.jobs() == []
    ledger.create(job, {}, "{}")
    assert events(ledger, job) == [("created", "", "command", None)]


def test_workers_of_an_older_version_leave_no_history_behind(
    ledger: Ledger, client: redis.Redis
) -> None:
    scripts = {
        name: text.replace("pcall(append_event, kind, words, by, unit)", "")
        .replace("pcall(append_sample)", "")
        .replace(", 'samples', 'sampling', 'events'", "")
        for name, text in read_scripts().items()
    }
    older = Ledger(client, patience_ms=5000, scripts=scripts)
    job = new_job(ledger, 2)
    commit(ledger, job, 0)
    client.hset(keys.job_key(job, "live"), "1", "7,0,70")  # as they report it
    assert ledger.status(job).live == Live(rows=7, bytes=70)
    assert take(ledger, job, 1, "a") > 0
    commit(older, job, 1)  # it ends the job
    ends = {part: client.pexpiretime(keys.job_key(job, part)) for part in keys.LASTING}
    assert all(0 < ends[part] <= ends["meta"] for part in ("samples", "sampling", "events")), ends
    assert ledger.find_damage(job) == []
    # Figures that a worker of this version sends are read by older ones.
    rows, rejected, size_bytes, *_ = (
        Live(rows=1, rejected=2, bytes=3, in_flight=4).pack().split(",")
    )
    assert (rows, rejected, size_bytes) == ("1", "2", "3")
