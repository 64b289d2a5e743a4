"""A job's life: created, filled while it runs, ended in each possible way, resumed, forgotten."""

import time

import pytest
import redis

from ringhaul.errors import UsageError
from ringhaul.ledger import keys
from ringhaul.ledger.answers import Commit, Issued, Lease
from ringhaul.ledger.forget import LOOKED_AT_MAX, forget_gone, forget_job
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.ledger.reading import JobMissing
from ringhaul.ledger.states import JobState
from tests.integration.ledger.conftest import new_job


def finish_unit(ledger: Ledger, job: str, unit: int, rows: int = 1, rejected: int = 0) -> Commit:
    epoch = ledger.status(job).epoch
    ledger.claim(job, unit, epoch, f"t{unit}", 60_000)
    totals = {"rows": rows, "rejected": rejected}
    return ledger.commit(job, unit, epoch, f"t{unit}", f"{rows}", totals)


def test_create_repeated_and_clashing(ledger: Ledger) -> None:
    ledger.create("ld-1", {"target": "shop.orders"}, '{"a": 1}')
    created = ledger.status("ld-1")
    ledger.create("ld-1", {"target": "shop.orders"}, '{"a": 1}')
    assert ledger.status("ld-1").created_ms == created.created_ms
    assert created.labels == {"target": "shop.orders"}
    assert ledger.job_spec("ld-1") == '{"a": 1}'
    with pytest.raises(UsageError, match="taken by another job"):
        ledger.create("ld-1", {}, '{"a": 2}')
    with pytest.raises(ValueError, match="epoch"):
        ledger.create("ld-2", {"epoch": "7"}, "{}")


def test_units_are_added_while_the_job_runs(ledger: Ledger) -> None:
    job = new_job(ledger, 2, seal=False)
    assert ledger.issue(job, 8).units == [0, 1]
    finish_unit(ledger, job, 0)
    finish_unit(ledger, job, 1)
    assert ledger.status(job).state is JobState.RUNNING  # not sealed: more units may follow
    assert ledger.add_units(job, 1, 2, ["c", "d"]) == 4
    assert ledger.issue(job, 8).units == [2, 3]
    assert ledger.seal(job, 1, 4) == 4
    finish_unit(ledger, job, 2)
    finish_unit(ledger, job, 3)
    status = ledger.status(job)
    assert (status.state, status.totals["rows"]) == (JobState.COMPLETE, 4)
    assert ledger.seal(job, 1, 4) == 4  # as if its answer was lost


def test_appending_twice_adds_once_and_a_gap_is_reported(ledger: Ledger) -> None:
    job = new_job(ledger, 300, seal=False)
    assert ledger.add_units(job, 1, 0, ["other"] * 300) == 300
    assert ledger.add_units(job, 1, 299, ["other", "new"]) == 301
    assert ledger.unit_spec(job, 299) == "spec-299"
    assert ledger.unit_spec(job, 300) == "new"
    assert ledger.unit_spec(job, 301) is None
    assert ledger.add_units(job, 1, 400, ["far"]) == 301
    assert ledger.status(job).pending == 301
    assert [unit for unit, _ in ledger.unit_specs(job)] == list(range(301))
    assert ledger.seal(job, 1, 400) == 301  # refused: units are missing
    assert not ledger.status(job).sealed
    assert ledger.add_units(job, 2, 301, ["x"]) is None


def test_an_empty_job_is_over_when_it_is_sealed(ledger: Ledger) -> None:
    job = new_job(ledger, 0)
    status = ledger.status(job)
    assert status.state is JobState.COMPLETE
    assert status.finished_ms is not None


def test_rejects_make_a_job_partial(ledger: Ledger) -> None:
    job = new_job(ledger, 1)
    ledger.issue(job, 1)
    finish_unit(ledger, job, 0, rows=9, rejected=1)
    assert ledger.status(job).state is JobState.PARTIAL


def test_too_many_rejects_stop_a_job_and_resume_sets_a_new_limit(ledger: Ledger) -> None:
    job = new_job(ledger, 6, error_limit=ErrorLimit.parse("10"))
    ledger.issue(job, 6)
    finish_unit(ledger, job, 0, rejected=10)
    assert ledger.status(job).state is JobState.RUNNING
    finish_unit(ledger, job, 1, rejected=1)
    assert ledger.status(job).state is JobState.STOPPED
    epoch = ledger.resume(job)
    assert ledger.issue(job, 8) == Issued(epoch, [2, 3, 4, 5])
    finish_unit(ledger, job, 2, rejected=10)
    assert ledger.status(job).state is JobState.RUNNING
    finish_unit(ledger, job, 3, rejected=1)
    assert ledger.status(job).state is JobState.STOPPED
    ledger.resume(job, error_limit=ErrorLimit())
    ledger.issue(job, 8)
    finish_unit(ledger, job, 4, rejected=1000)
    finish_unit(ledger, job, 5)
    status = ledger.status(job)
    assert (status.state, status.totals["rejected"]) == (JobState.PARTIAL, 1022)


def test_a_unit_with_too_many_rejects_stops_the_job_and_is_not_done(
    ledger: Ledger, client: redis.Redis
) -> None:
    job = new_job(ledger, 3, error_limit=ErrorLimit.parse("10"))
    assert ledger.records_max(job) == 10
    ledger.issue(job, 3)
    totals = {"rows": 5, "rejected": 2}
    ledger.claim(job, 0, 1, "t0", 60_000)
    ledger.commit(job, 0, 1, "t0", "5", totals, extra=b"two")
    # When an attempt stops half way
    ledger.claim(job, 1, 1, "t1", 60_000)
    live = Live(rows=3, rejected=11, bytes=99)
    assert ledger.stop(job, 1, "t1", live, b"eleven") is Lease.OK
    assert ledger.stop(job, 1, "t1", live, b"eleven") is Lease.LOST  # as if its answer was lost
    # Then its rejects can be listed, and no count includes them
    status = ledger.status(job)
    assert (status.state, status.done, status.pending, status.leased) == (JobState.STOPPED, 1, 2, 0)
    assert (status.totals, status.live) == (totals, live)
    assert dict(ledger.extras(job)) == {0: b"two", 1: b"eleven"}
    assert dict(ledger.results(job)) == {0: "5"}
    assert all(client.ttl(keys.job_key(job, part)) > 0 for part in ("extras", "live"))
    # And a resume runs the unit again from its start
    epoch = ledger.resume(job)
    assert dict(ledger.extras(job)) == {0: b"two"}
    assert ledger.status(job).live == Live()
    assert ledger.issue(job, 8)[:2] == (epoch, [1, 2])
    finish_unit(ledger, job, 1, rows=40, rejected=10)
    finish_unit(ledger, job, 2)
    status = ledger.status(job)
    assert (status.state, status.totals) == (JobState.PARTIAL, {"rows": 46, "rejected": 12})


def test_the_rejects_of_all_units_that_stop_a_job_are_kept(
    ledger: Ledger, client: redis.Redis
) -> None:
    job = new_job(ledger, 3, error_limit=ErrorLimit.parse("10"))
    ledger.issue(job, 3)
    for unit in range(3):
        ledger.claim(job, unit, 1, f"t{unit}", 60_000)
    ledger.stop(job, 0, "t0", Live(rejected=11), b"a")
    assert ledger.stop(job, 1, "t1", Live(rejected=12), b"b") is Lease.OK
    assert dict(ledger.extras(job)) == {0: b"a", 1: b"b"}
    assert (ledger.status(job).leased, ledger.status(job).live.rejected) == (1, 23)
    # And a unit that has no reject when it is done after all is committed without any
    assert ledger.commit(job, 0, 1, "other", "9", {"rows": 9}) is Commit.COUNTED
    assert dict(ledger.extras(job)) == {1: b"b"}
    assert client.ttl(keys.job_key(job, "extras")) > 0


def test_a_job_without_a_reject_limit_never_stops(ledger: Ledger) -> None:
    assert ledger.records_max(new_job(ledger, 1)) == -1
    assert ledger.records_max(new_job(ledger, 1, error_limit=ErrorLimit.parse("5%"))) == -1
    assert ledger.records_max("ld-none") == -1


@pytest.mark.parametrize(
    ("rows", "rejected"), [(899, 100), (900, 100), (898, 101), (899, 101), (0, 1000)]
)
def test_a_share_of_rejects_stops_a_job_at_its_limit(
    ledger: Ledger, rows: int, rejected: int
) -> None:
    limit = ErrorLimit.parse("10%")
    job = new_job(ledger, 2, error_limit=limit)
    ledger.issue(job, 1)
    finish_unit(ledger, job, 0, rows=rows, rejected=rejected)
    stopped = ledger.status(job).state is JobState.STOPPED
    assert stopped == limit.exceeded(rejected=rejected, seen=rows + rejected)


def test_cancel_then_resume_runs_the_missing_units(ledger: Ledger) -> None:
    job = new_job(ledger, 600)
    done = [0, 1, 7, 8, 9, 300, 599]
    units = ledger.issue(job, 600).units
    assert units == list(range(600))
    for unit in done:
        assert finish_unit(ledger, job, unit) is Commit.COUNTED
    assert ledger.cancel(job) is JobState.CANCELLED
    assert ledger.cancel(job) is JobState.CANCELLED
    assert ledger.issue(job, 600) == Issued(0, [])

    epoch = ledger.resume(job)
    assert epoch == 2
    assert ledger.commit(job, 2, 1, "old", "", {"rows": 1}) is Commit.STALE
    units = ledger.issue(job, 1000).units
    assert units == [unit for unit in range(600) if unit not in done]
    for unit in units:
        assert finish_unit(ledger, job, unit) is Commit.COUNTED
    status = ledger.status(job)
    assert (status.state, status.totals["rows"], status.done) == (JobState.COMPLETE, 600, 600)


def test_resume_of_a_job_without_open_units_ends_it(ledger: Ledger) -> None:
    job = new_job(ledger, 1)
    ledger.issue(job, 1)
    ledger.claim(job, 0, 1, "a", 60_000)
    ledger.cancel(job)
    assert ledger.commit(job, 0, 1, "a", "", {"rows": 1}) is Commit.COUNTED
    ledger.resume(job)
    assert ledger.status(job).state is JobState.COMPLETE


def test_resume_is_refused_in_other_states(ledger: Ledger) -> None:
    job = new_job(ledger, 1)
    with pytest.raises(UsageError, match="it is RUNNING"):
        ledger.resume(job)
    ledger.issue(job, 1)
    finish_unit(ledger, job, 0)
    with pytest.raises(UsageError, match="it is COMPLETE"):
        ledger.resume(job)
    with pytest.raises(JobMissing, match="there is no job ld-none"):
        ledger.resume("ld-none")


def test_a_failing_producer_fails_the_job(ledger: Ledger) -> None:
    job = new_job(ledger, 1, seal=False)
    assert ledger.fail(job, "orders.csv changed while it was read") is JobState.FAILED
    assert ledger.seal(job, 1, 1) is None
    assert ledger.status(job).last_error == "orders.csv changed while it was read"
    with pytest.raises(JobMissing):
        ledger.fail("ld-none", "x")


def test_keys_live_a_week_after_the_end_also_after_a_resume(
    ledger: Ledger, client: redis.Redis
) -> None:
    job = new_job(ledger, 300)
    ledger.issue(job, 300)
    finish_unit(ledger, job, 0, rejected=1)
    ledger.claim(job, 299, 1, "late", 60_000)
    history = {"ends", "samples", "sampling", "events"}
    assert _live_a_week(client, job) == history
    ledger.cancel(job)
    # This operation creates keys that did not exist when the job ended.
    ledger.commit(job, 299, 1, "late", "r", {"rows": 1}, {"4": 1}, extra=b"x")
    ttls = _ttls(client, job)
    assert {"results:1", "lat", "extras", "units:0", "units:1", "spec"} <= set(ttls)
    assert _live_a_week(client, job) == set(ttls)
    assert len(set(_ends(client, job).values())) == 1, "no part of it outlives another"
    ledger.resume(job)
    assert _live_a_week(client, job) == history


def test_jobs_are_listed_newest_first_and_forgotten_with_their_keys(
    ledger: Ledger, client: redis.Redis
) -> None:
    names = [new_job(ledger, 1) for _ in range(5)]
    for number, name in enumerate(names):
        client.zadd(keys.JOBS, {name: number})
    client.delete(*client.keys(f"ringhaul:{{{names[3]}}}:*"))
    listed = [status.job for status in ledger.jobs(3)]
    assert listed == [names[4], names[2], names[1]]
    assert client.zscore(keys.JOBS, names[3]) is None
    assert len(ledger.jobs()) == 4


def test_forgotten_jobs_leave_the_list_when_only_newer_ones_are_read(
    ledger: Ledger, client: redis.Redis
) -> None:
    # Given jobs older than the retention time, one of which still runs, and a younger,
    # forgotten one
    names = [new_job(ledger, 1) for _ in range(6)]
    old_ms = int(time.time() * 1000) - keys.JOB_TTL_S * 1000 - 60_000
    for number, name in enumerate(names[:4]):
        client.zadd(keys.JOBS, {name: old_ms + number})
    for name in (names[0], names[2], names[3], names[4]):
        client.delete(*client.keys(f"ringhaul:{{{name}}}:*"))
    # When the newest job is read
    assert [status.job for status in ledger.jobs(1)] == [names[5]]
    # Then the old, expired ones are no longer listed
    assert client.zrange(keys.JOBS, 0, -1) == [name.encode() for name in (names[1], *names[4:])]


def test_old_jobs_that_never_ended_do_not_hide_the_forgotten_ones(
    ledger: Ledger, client: redis.Redis
) -> None:
    lasting = [new_job(ledger, 0, seal=False) for _ in range(LOOKED_AT_MAX + 20)]
    client.zadd(keys.JOBS, {name: number for number, name in enumerate(lasting)})
    client.zadd(keys.JOBS, {f"gone-{number}": 1000 + number for number in range(50)})
    dropped: list[str] = []
    for _ in range(200):
        dropped += forget_gone(ledger.caller, keys.JOBS)
    assert sorted(dropped) == sorted(f"gone-{number}" for number in range(50))
    assert client.zcard(keys.JOBS) == len(lasting)


def test_labels_and_times(ledger: Ledger) -> None:
    job = new_job(ledger, 1)
    before = ledger.status(job)
    assert (before.started_ms, before.finished_ms, before.finished) == (None, None, False)
    ledger.issue(job, 1)
    finish_unit(ledger, job, 0)
    after = ledger.status(job)
    assert after.started_ms is not None and after.finished_ms is not None
    assert after.created_ms <= after.started_ms <= after.finished_ms <= after.now_ms
    assert after.finished and after.labels == {"verb": "load"}


def _ends(client: redis.Redis, job: str) -> dict[str, int]:
    prefix = keys.job_key(job, "")
    return {key.decode(): client.pexpiretime(key) for key in client.keys(prefix + "*")}


def _ttls(client: redis.Redis, job: str) -> dict[str, int]:
    """Return the TTL in seconds by the last part of the key."""
    prefix = f"ringhaul:{{{job}}}:"
    return {key.decode()[len(prefix) :]: client.ttl(key) for key in client.keys(prefix + "*")}


def _live_a_week(client: redis.Redis, job: str) -> set[str]:
    """Return the last parts of the keys that expire, all of them in a week."""
    ttls = {part: ttl for part, ttl in _ttls(client, job).items() if ttl != -1}
    assert all(keys.JOB_TTL_S - 60 <= ttl <= keys.JOB_TTL_S for ttl in ttls.values()), ttls
    return set(ttls)


@pytest.mark.parametrize("ended", [True, False])
def test_a_job_is_removed_at_once_with_all_its_keys(
    ledger: Ledger, client: redis.Redis, ended: bool
) -> None:
    other = new_job(ledger, 1)
    before = set(client.keys("ringhaul:*"))
    units = keys.UNITS_PER_BUCKET + 1
    job = new_job(ledger, units)
    ledger.issue(job, units)
    for unit in range(units if ended else 2):
        finish_unit(ledger, job, unit)
    forget_job(ledger.caller, job, units)
    assert [status.job for status in ledger.jobs()] == [other]
    assert {key for key in client.keys("ringhaul:{*") if job.encode() in key} == set()
    assert before <= set(client.keys("ringhaul:*"))
    with pytest.raises(JobMissing):
        ledger.status(job)
    # A worker that was at it finds no job
    assert ledger.commit(job, 0, 1, "t0", "1", {"rows": 1}) is not Commit.COUNTED


def test_a_job_created_just_after_it_was_missed_is_missing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a command that waits for a job to appear would call it damaged."""
    job = new_job(ledger, 1)
    monkeypatch.setattr(ledger, "_status", lambda job: None)
    with pytest.raises(JobMissing):
        ledger.status(job)
