"""One unit in a worker process: claim, run, commit; and every other way that it can end."""

from __future__ import annotations

import json
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from producer.report.recent import recent_snapshot
from producer.run.job import Plan, create_job
from ringhaul.ledger.answers import Claimed
from ringhaul.ledger.history import EventKind, History
from ringhaul.ledger.ledger import new_token
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.ledger.pace import Limits, Pace
from ringhaul.ledger.states import JobState
from ringhaul.load.report import build_report
from ringhaul.load.statement import Statements
from ringhaul.records.rejects import unpack_rejects
from ringhaul.records.unit import UnitResult
from ringhaul.statements.job import StatementJob
from tasks.base import attempt_token
from tasks.child.load import run_load
from tasks.child.process import Child
from tasks.child.unit import Attempt, Done
from tasks.child.unit import work as work_on
from tests.integration.conftest import Settle
from tests.integration.load.conftest import read_table
from tests.integration.tasks.conftest import MakeJob
from tests.loads import load_job, table_schema
from tests.services import fresh_keyspace

JOB = "ld-000001"
LEASE_MS = 60_000


def work(child: Child, job: str, unit: int, epoch: int, token: str) -> dict[str, Any]:
    """Handle a message as the load task does."""
    return work_on(child, job, unit, epoch, token, run_load)


def test_units_in_any_order_and_twice_are_counted_once(
    child: Child, make_job: MakeJob, keyspace: str, cassandra_session: Session
) -> None:
    # Given a job of many units, with repeated keys and some bad records
    records = [f"{i % 70},v{i}" if i % 9 else f"x{i},bad" for i in range(300)]
    job = make_job(JOB, records)
    units = child.ledger.status(JOB).units
    assert units > 20
    # When its units run from the last to the first, every other one with two messages
    for unit in reversed(range(units)):
        result = work(child, JOB, unit, 1, new_token())
        assert set(result) == {"unit", "rows", "rejected"}
        if unit % 2:
            again = work(child, JOB, unit, 1, new_token())
            assert again["skipped"] in ("DONE", "STOP")
    # Then the ledger has every record once
    status = child.ledger.status(JOB)
    assert (status.state, status.pending, status.leased, status.issued) == (
        JobState.PARTIAL,
        0,
        0,
        0,
    )
    bad = [i for i in range(300) if not i % 9]
    assert status.totals == {
        "rows": 300 - len(bad),
        "rejected": len(bad),
        "bytes": job.total_bytes,
        "retries": 0,
    }
    # And the report, which uses only the results, has the same counts
    results = [UnitResult.unpack(packed) for _, packed in child.ledger.results(JOB)]
    report = build_report(["in.csv"], results, {})
    assert (report.units, report.records, report.written) == (units, 300, 300 - len(bad))
    assert report.repeated_units == 0
    assert report.workers == {child.name: units}
    # And the rejects are the bad records in the order of the file, with their original bytes
    rejects = [r for _, blob in child.ledger.extras(JOB) for r in unpack_rejects(blob)]
    assert [r.line for r in rejects] == [i + 1 for i in bad]
    assert [r.data for r in rejects] == [records[i].encode() for i in bad]
    # And the table has the last record of each key, although it was written first
    last = {i % 70: i for i in range(300) if i % 9}
    assert read_table(cassandra_session, keyspace, "id, v, writetime(v)") == sorted(
        ((key, f"v{i}", job.base_us + i) for key, i in last.items()), key=repr
    )
    # And each request has a latency
    assert sum(child.ledger.latencies(JOB).values()) >= units


def test_a_unit_of_another_attempt_is_left_to_it(child: Child, make_job: MakeJob) -> None:
    make_job(JOB, ["1,a"])
    assert isinstance(child.ledger.claim(JOB, 0, 1, new_token(), LEASE_MS), Claimed)
    assert work(child, JOB, 0, 1, new_token()) == {"unit": 0, "skipped": "BUSY"}


@pytest.mark.parametrize(("unit", "epoch", "answer"), [(9, 1, "UNKNOWN"), (0, 2, "STOP")])
def test_stale_messages_are_dropped(
    child: Child, make_job: MakeJob, unit: int, epoch: int, answer: str
) -> None:
    make_job(JOB, ["1,a"])
    assert work(child, JOB, unit, epoch, new_token()) == {"unit": unit, "skipped": answer}


def test_a_message_of_a_forgotten_job_is_dropped(child: Child) -> None:
    result = work(child, "ld-ffffff", 0, 1, new_token())
    assert result["skipped"].startswith("there is no job ld-ffffff")


def test_a_job_of_another_cluster_is_left_to_its_own_workers(
    child: Child, make_job: MakeJob
) -> None:
    # Given a job planned for another cluster
    make_job(JOB, ["1,a"], cluster_name="production")
    result = work(child, JOB, 0, 1, new_token())
    # Then nothing is claimed or written, and the message has both names
    assert "'production'" in result["skipped"]
    assert "'ringhaul local'" in result["skipped"]
    status = child.ledger.status(JOB)
    assert (status.leased, status.pending, status.totals.get("rows", 0)) == (0, 1, 0)


def test_units_of_a_cancelled_job_do_not_run(child: Child, make_job: MakeJob) -> None:
    make_job(JOB, ["1,a"])
    child.ledger.cancel(JOB)
    assert work(child, JOB, 0, 1, new_token()) == {"unit": 0, "skipped": "STOP"}


def test_a_job_is_stopped_by_one_reject_too_many(child: Child, make_job: MakeJob) -> None:
    # Given a job that allows two rejects
    make_job(JOB, ["x,1", "y,2", "z,3", "4,d"], max_errors="2", unit_bytes=1)
    assert child.ledger.status(JOB).units == 4
    states = []
    for unit in range(4):
        work(child, JOB, unit, 1, new_token())
        states.append(child.ledger.status(JOB).state)
    # Then the third one ends it, and the fourth record is not loaded
    assert states == [JobState.RUNNING, JobState.RUNNING, JobState.STOPPED, JobState.STOPPED]
    assert child.ledger.status(JOB).totals["rows"] == 0


def test_a_unit_with_too_many_rejects_stops_early_and_runs_again_after_a_resume(
    child: Child, make_job: MakeJob
) -> None:
    # Given a unit of many blocks whose first records are bad
    records = [f"x{i},bad" for i in range(500)] + [f"{i},good" for i in range(500)]
    make_job(JOB, records, max_errors="10", unit_bytes=1 << 20, block_bytes=200)
    result = work(child, JOB, 0, 1, new_token())
    # Then it ends at the next block, and its rejects so far are stored
    status = child.ledger.status(JOB)
    assert (status.state, status.done, status.pending, status.leased) == (JobState.STOPPED, 0, 1, 0)
    found = [r for _, blob in child.ledger.extras(JOB) for r in unpack_rejects(blob)]
    assert 10 < len(found) < 50
    assert result == {"unit": 0, "stopped": f"{len(found)} records were rejected"}
    assert [r.line for r in found] == list(range(1, len(found) + 1))
    assert status.live.rejected == len(found)
    assert (status.totals.get("rejected", 0), list(child.ledger.results(JOB))) == (0, [])
    # And a resume that allows them runs the whole unit, and counts each record once
    epoch = child.ledger.resume(JOB, error_limit=ErrorLimit())
    assert list(child.ledger.extras(JOB)) == []
    child.ledger.issue(JOB, 10)
    work(child, JOB, 0, epoch, new_token())
    status = child.ledger.status(JOB)
    assert (status.state, status.done) == (JobState.PARTIAL, 1)
    assert (status.totals["rows"], status.totals["rejected"]) == (500, 500)
    rejects = [r for _, blob in child.ledger.extras(JOB) for r in unpack_rejects(blob)]
    assert [r.line for r in rejects] == list(range(1, 501))


def test_a_dropped_table_fails_the_job_and_releases_the_unit(
    child: Child, make_job: MakeJob, cassandra_session: Session, keyspace: str
) -> None:
    make_job(JOB, ["1,a", "2,b"], unit_bytes=1)
    cassandra_session.execute(f"DROP TABLE {keyspace}.t")
    result = work(child, JOB, 0, 1, new_token())
    # Then the reason is clear, and the lease is released at once
    assert "does not exist" in result["failed"]
    status = child.ledger.status(JOB)
    assert (status.state, status.leased) == (JobState.FAILED, 0)
    assert status.last_error == result["failed"]
    assert status.totals.get("rows", 0) == 0


def test_a_repeated_unit_does_not_change_lists(
    child: Child, make_job: MakeJob, cassandra_session: Session, keyspace: str
) -> None:
    # Given a unit whose attempt wrote all of it and ended before the commit
    definition = "id int PRIMARY KEY, tags list<text>"
    make_job(JOB, [f'{i},"[""a{i}"", ""b""]"' for i in range(50)], definition=definition)
    units = child.ledger.status(JOB).units

    def half(attempt: Attempt) -> Done:
        run_load(attempt)
        raise SystemExit

    for unit in range(units):
        with pytest.raises(SystemExit):
            work_on(child, JOB, unit, 1, new_token(), half)
    # When it runs once more
    for unit in child.ledger.issue(JOB, 1000).units:
        work(child, JOB, unit, 1, new_token())
    # Then each element exists once
    assert child.ledger.status(JOB).totals["rows"] == 50
    assert read_table(cassandra_session, keyspace, "id, tags") == sorted(
        ((i, [f"a{i}", "b"]) for i in range(50)), key=repr
    )


def test_a_unit_of_a_paused_job_is_released_at_once(
    child: Child, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.child.unit.RENEW_S_MAX", 0.0)
    make_job(JOB, ["1,a", "2,b"], unit_bytes=1)

    def paused(attempt: Attempt) -> Done:
        child.ledger.pause(JOB)
        attempt.tick(0, 0, 0)
        raise AssertionError("not stopped")

    result = work_on(child, JOB, 0, 1, new_token(), paused)
    # Then its worker is free, the unit is not blamed, and messages of the job are dropped
    assert result == {"unit": 0, "stopped": "PAUSE"}
    status = child.ledger.status(JOB)
    assert (status.state_name, status.leased, status.last_error) == ("PAUSED", 0, None)
    assert work(child, JOB, 1, 1, new_token()) == {"unit": 1, "skipped": "PAUSED"}
    # And it starts again from its beginning
    child.ledger.unpause(JOB)
    for unit in child.ledger.issue(JOB, 10).units:
        work(child, JOB, unit, 1, new_token())
    assert child.ledger.status(JOB).totals["rows"] == 2


def test_a_unit_that_must_not_run_twice_is_finished_in_a_pause(
    child: Child, cassandra_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.child.unit.RENEW_S_MAX", 0.0)
    job = StatementJob(
        kind="exec",
        cluster_name=cassandra_session.cluster.metadata.cluster_name,
        values=load_job(table_schema({"id": "int"}, [])),
        spans=("id:1..2",),
        statement="UPDATE shop.visits SET n = n + 1 WHERE id = ?",
        repeatable=False,
    )
    plan = Plan(job=job, units=["0-1", "1-2"], target="update", headline="")
    create_job(child.ledger, JOB, plan, "unread")
    child.ledger.issue(JOB, 10)

    def paused(attempt: Attempt) -> Done:
        child.ledger.pause(JOB)
        attempt.tick(0, 0, 0)
        return Done(result="done", totals={"rows": 1})

    def waits() -> int:
        """Return how often Redis waited for its file to reach the disk."""
        client = child.ledger.caller.client
        return int(client.info("commandstats").get("cmdstat_waitaof", {}).get("calls", 0))

    before = waits()
    assert work_on(child, JOB, 0, 1, new_token(), paused) == {"unit": 0}
    assert waits() == before + 1  # a crash of Redis must not forget the start
    status = child.ledger.status(JOB)
    assert (status.state_name, status.done, status.leased) == ("PAUSED", 1, 0)
    assert work_on(child, JOB, 1, 1, new_token(), paused) == {"unit": 1, "skipped": "PAUSED"}


def test_limits_arrive_with_the_claim_and_at_each_tick(
    child: Child, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.child.unit.RENEW_S_MAX", 0.0)
    make_job(JOB, ["1,a", "2,b"])
    child.ledger.throttle(JOB, Pace(limits=Limits(in_flight=5)))

    def limited(attempt: Attempt) -> Done:
        assert attempt.throttle.requests_max == 5
        child.ledger.throttle(JOB, Pace(limits=Limits(rows_per_s=50)))
        attempt.tick(0, 0, 0)
        assert (attempt.throttle.rows_at_once, attempt.throttle.paced) == (5, True)
        return run_load(attempt)

    assert work_on(child, JOB, 0, 1, new_token(), limited)["rows"] == 2


def test_a_file_that_changed_fails_the_job(child: Child, make_job: MakeJob, tmp_path: Path) -> None:
    job = make_job(JOB, ["1,a", "2,b"])
    Path(job.sources[0].file.path).write_text("1,a\n")
    result = work(child, JOB, 0, 1, new_token())
    assert "the file is 4 bytes now and was 8 when the job started" in result["failed"]
    assert child.ledger.status(JOB).state is JobState.FAILED


def test_a_transient_error_releases_the_unit_and_finally_fails_the_job(
    child: Child, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a keyspace with too few nodes for the job's consistency
    monkeypatch.setattr("tasks.child.unit.RETRY_DELAY_MS", 0)
    child.bounds = replace(child.bounds, retries_max=0)
    make_job(JOB, ["1,a"], consistency="TWO")
    # When the unit is retried until the job gives up
    tries = 0
    while child.ledger.status(JOB).state is JobState.RUNNING:
        result = work(child, JOB, 0, 1, new_token())
        assert "the last time with" in result["released"]
        assert child.ledger.status(JOB).leased == 0
        child.ledger.issue(JOB, 1000)
        tries += 1
    # Then it ran once more than a unit may fail, and the reason is the server's
    status = child.ledger.status(JOB)
    assert tries == child.ledger.fails_max + 1
    assert (status.state, status.done) == (JobState.FAILED, 0)
    assert "Cannot achieve consistency level TWO" in (status.last_error or "")


def test_a_failed_unit_is_not_retried_at_once(child: Child, make_job: MakeJob) -> None:
    child.bounds = replace(child.bounds, retries_max=0)
    make_job(JOB, ["1,a"], consistency="TWO")
    assert "released" in work(child, JOB, 0, 1, new_token())
    status = child.ledger.status(JOB)
    assert (status.stands_still, status.failing, status.fails) == (True, 1, 1)
    # Then it is neither claimed nor issued before its delay is over
    assert work(child, JOB, 0, 1, new_token()) == {"unit": 0, "skipped": "BUSY"}
    assert child.ledger.issue(JOB, 1000).units == []


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"CLUSTER_PORT": 1}, "no node answers at 127.0.0.1:1: "),
        (
            {"CLUSTER_USER": "etl", "CLUSTER_PASSWORD_FILE": "/nowhere/password"},
            "cluster.password_file: ",
        ),
    ],
    ids=["refused", "no password file"],
)
def test_a_worker_without_a_session_reports_it_in_the_job(
    settle: Settle,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, object],
    reason: str,
) -> None:
    # Given a worker that cannot open a session, and a job
    monkeypatch.setattr("tasks.child.unit.NO_SESSION_WAIT_S", 0.0)
    child = Child(
        settle(
            CLUSTER_CONTACT_POINTS="127.0.0.1",
            STATE_DIR=tmp_path / "state",
            WORKER_SESSION_JITTER_S=0,
            **settings,
        )
    )
    ledger = child.ledger
    ledger.create(JOB, {}, "{}")
    ledger.add_units(JOB, 1, 0, ["a"])
    ledger.issue(JOB, 1)
    # When it gets the unit's message
    assert work(child, JOB, 0, 1, new_token()) == {"unit": 0, "skipped": "no session"}
    # Then the job's status names the host without a session and the reason
    shown = recent_snapshot(ledger.status(JOB), [])
    assert shown.retrying is not None
    reported = shown.retrying.removeprefix("no unit is in progress; one was declined 0:00 ago: ")
    assert reported.startswith(f"{socket.gethostname()}: {reason}")
    # And only until another worker claims the unit
    assert ledger.issue(JOB, 1).units == [0]
    assert isinstance(ledger.claim(JOB, 0, 1, new_token(), LEASE_MS), Claimed)
    assert recent_snapshot(ledger.status(JOB), []).retrying is None
    child.close()
    ledger.caller.client.close()


def test_a_statement_is_prepared_once_and_a_job_is_read_once(
    child: Child, make_job: MakeJob
) -> None:
    make_job(JOB, ["1,a", "2,b", "3,c"], unit_bytes=1)
    parsed = child.job(JOB)
    work(child, JOB, 0, 1, new_token())
    (statement,) = child._prepared.values()
    for unit in (1, 2):
        work(child, JOB, unit, 1, new_token())
    assert list(child._prepared.values()) == [statement]
    assert child.job(JOB) is parsed
    assert json.loads(child.ledger.job_spec(JOB)) == parsed.to_json()


def test_the_most_recent_jobs_stay_parsed(child: Child, make_job: MakeJob) -> None:
    # Given a child that works on one job between others
    for number in range(8):
        make_job(f"ld-{number:06}", [f"{number},a"])
    kept = child.job("ld-000000")
    for number in range(1, 8):
        child.job(f"ld-{number:06}")
        assert child.job("ld-000000") is kept
    assert len(child._jobs) == 4


def test_an_unreadable_job_fails_with_the_reason(child: Child) -> None:
    # Given a job of another version of ringhaul
    ledger = child.ledger
    ledger.create("ld-0dd0dd", {}, '{"kind": "load", "table": {}}')
    ledger.add_units("ld-0dd0dd", 1, 0, ["0,0,1,0,1,1"])
    # When a worker gets its unit
    result = work(child, "ld-0dd0dd", 0, 1, new_token())
    # Then the job does not loop forever
    assert "cannot read the job (KeyError" in result["failed"]
    status = ledger.status("ld-0dd0dd")
    assert status.state is JobState.FAILED
    assert status.last_error is not None
    assert status.last_error.endswith("; use one version of ringhaul on all hosts")


def test_a_keyspace_newer_than_the_session_is_known_before_rows_are_routed(
    child: Child, cassandra_session: Session
) -> None:
    # Given a connected worker process
    child.session()
    with fresh_keyspace(cassandra_session) as made:
        cassandra_session.execute(f"CREATE TABLE {made}.t (id int PRIMARY KEY)")
        # When it gets rows of a newer keyspace
        target = child.target(Statements(f'INSERT INTO "{made}"."t" ("id") VALUES (?)'), made)
        # Then it knows their replicas
        assert made in target.session.cluster.metadata.keyspaces


def test_what_a_unit_noticed_is_in_the_history_of_its_job(child: Child, make_job: MakeJob) -> None:
    job = make_job(JOB, [f"{i},v" for i in range(20)], unit_bytes=1 << 20)
    assert child.ledger.status(JOB).units == 1
    (host,) = child.session().cluster.metadata.all_hosts()[:1]
    seen: list[int] = []

    def run(attempt: Attempt) -> Done:
        done = run_load(attempt)
        # While requests are unanswered, as a renewal reports them
        wire = child.plane().connection(host)
        assert wire is not None
        wire.window.sent(None, 0, 5, 100, time.monotonic())
        until_s = time.monotonic() + 10
        while tick(attempt) != 5:
            assert time.monotonic() < until_s, "no renewal"
            time.sleep(0.05)
        seen.append(child.ledger.status(JOB).leased)
        # and a node that is left alone, for one reason twice
        wire.window.lost()
        for reason in ("no answer", "no answer", "silent"):
            child.plane().drop(host, f"{host.address}: {reason}")
        return replace(done, window_shrunk=2, window_min=96)

    def tick(attempt: Attempt) -> int:
        attempt.tick(20, 0, job.total_bytes)
        return child.ledger.status(JOB).live.in_flight

    token = attempt_token("task", f"celery@{socket.gethostname()}", 1)
    assert work_on(child, JOB, 0, 1, token, run) == {"unit": 0, "rows": 20, "rejected": 0}
    assert seen == [1]
    found = History(child.ledger.caller).events(JOB)
    noticed = [(event.kind, event.text, event.unit) for event in found if event.unit == 0][1:]
    assert noticed == [
        (EventKind.NODE_REST, f"{host.address}: no answer", 0),
        (EventKind.NODE_REST, f"{host.address}: silent", 0),
        (EventKind.WINDOW_SHRUNK, "to 96 unanswered requests", 0),
    ]
    assert all(event.by == socket.gethostname() for event in found if event.unit == 0)
    assert found[-1].kind is EventKind.ENDED
