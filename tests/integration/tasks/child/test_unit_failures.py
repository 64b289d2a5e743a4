"""Ways in which a unit fails: its job ends or it is retried, and the status says why."""

from __future__ import annotations

import json
import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from config.celery_config import QUEUE_LOAD
from producer.figures.speed import recent_snapshot
from ringhaul.destination.delivered import Streaming
from ringhaul.ledger.answers import Claimed
from ringhaul.ledger.formats import Readable
from ringhaul.ledger.history import EventKind, History
from ringhaul.ledger.ledger import new_token
from ringhaul.ledger.states import JobState
from ringhaul.ledger.workers import Worker, Workers
from ringhaul.sstables.layout import Layout
from tasks.child.process import Child
from tests.integration.conftest import Settle
from tests.integration.tasks.child.messages import JOB, LEASE_MS, work
from tests.integration.tasks.conftest import MakeJob
from tests.loads import load_job, table_schema


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
    monkeypatch.setattr("tasks.child.declined.NO_SESSION_WAIT_S", 0.0)
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
    begin, _, reported = shown.retrying.partition(" ago: ")
    assert re.fullmatch(r"no unit is in progress; one was declined 0:\d\d", begin)
    assert reported.startswith(f"{socket.gethostname()}: {reason}")
    # And only until another worker claims the unit
    assert ledger.issue(JOB, 1).units == [0]
    assert isinstance(ledger.claim(JOB, 0, 1, new_token(), LEASE_MS), Claimed)
    assert recent_snapshot(ledger.status(JOB), []).retrying is None
    child.close()
    ledger.caller.client.close()


def _through_sidecars() -> str:
    """Return the spec of a load that an older version made with --via sidecar."""
    layout = Layout(partition_key_class="Int32Type", clustering=(), columns=(), written_s=1)
    table = table_schema({"id": "int"}, ["id"])
    job = replace(load_job(table), destination=Streaming(table_id="1", layout=layout))
    spec = job.to_json()
    spec["stream"]["by_sidecar"] = True
    return json.dumps(spec)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ('{"kind": "load", "table": {}}', "KeyError"),
        (_through_sidecars(), "ValueError: it loads --via sidecar, which this version of ringhaul"),
    ],
    ids=["a newer version", "a way that is gone"],
)
def test_an_unreadable_job_fails_with_the_reason(child: Child, spec: str, reason: str) -> None:
    # Given a job of another version of ringhaul
    ledger = child.ledger
    ledger.create("ld-0dd0dd", {}, spec)
    ledger.add_units("ld-0dd0dd", 1, 0, ["0,0,1,0,1,1"])
    # When a worker gets its unit
    result = work(child, "ld-0dd0dd", 0, 1, new_token())
    # Then the job does not loop forever
    assert f"cannot read the job ({reason}" in result["failed"]
    status = ledger.status("ld-0dd0dd")
    assert status.state is JobState.FAILED
    assert status.last_error is not None
    assert status.last_error.endswith(
        "no live worker can: use one version of ringhaul on all hosts"
    )


@pytest.mark.parametrize(
    ("spec", "other"),
    [
        ('{"kind": "load", "job_format": 2}', {"readable": Readable(1, 2)}),
        ('{"kind": "load", "table": {}}', {"version": "9.9"}),
    ],
    ids=["a later format", "a job that others may read"],
)
def test_a_job_that_another_version_may_read_is_left_to_its_workers(
    child: Child, spec: str, other: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.child.declined.UNREADABLE_WAIT_S", 0.0)
    # Given a job of another version, and live workers of both
    ledger, job = child.ledger, "ld-0dd0dd"
    ledger.create(job, {}, spec)
    ledger.add_units(job, 1, 0, ["0,0,1,0,1,1"])
    ledger.issue(job, 1)
    workers = Workers(ledger.caller)
    mine = Worker.of_this_version("mine", 1, 2, (QUEUE_LOAD,))
    theirs = mine._replace(host="theirs", **other)
    for worker in (mine, theirs):
        workers.heartbeat(worker, 60_000)

    # When a worker of this version gets the unit
    result = work(child, job, 0, 1, new_token())

    # Then it declines before any claim, says so in the history, and fails nothing
    assert result["skipped"].startswith("cannot read the job (")
    status = ledger.status(job)
    assert (status.state, status.leased, status.fails) == (JobState.RUNNING, 0, 0)
    events = History(ledger.caller).events(job)
    assert [event.text for event in events if event.kind == "unit released"] == [
        f"{socket.gethostname()}: {result['skipped']}"
    ]
    # And it is issued again for the others, after a delay
    assert ledger.issue(job, 1).units == []

    # When the last worker that can read it has left, then the job fails and says why
    workers.leave(theirs)
    result = work(child, job, 0, 1, new_token())
    assert ledger.status(job).state is JobState.FAILED
    assert "no live worker can: use one version" in str(ledger.status(job).last_error)


def test_a_job_whose_transform_is_missing_here_is_left_to_hosts_that_have_it(
    child: Child, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.child.declined.UNREADABLE_WAIT_S", 0.0)
    # Given a job with a transform that this host does not allow, and workers of two hosts
    ledger = child.ledger
    make_job(JOB, ["1,a"], transforms=("etl:mask",))
    workers = Workers(ledger.caller)
    mine = Worker.of_this_version(socket.gethostname(), 1, 2, (QUEUE_LOAD,))
    theirs = mine._replace(host="theirs")
    for worker in (mine, theirs):
        workers.heartbeat(worker, 60_000)

    # When a worker of this host gets the unit, then it declines before any claim
    result = work(child, JOB, 0, 1, new_token())
    assert "transform etl:mask on host" in result["skipped"]
    status = ledger.status(JOB)
    assert (status.state, status.leased, status.fails) == (JobState.RUNNING, 0, 0)
    assert "etl:mask" in (status.declined or "")
    assert ledger.issue(JOB, 1).units == []

    # When the other host has declined one, too, then the job ends with the reason
    History(ledger.caller).note(
        JOB, EventKind.RELEASED, text="theirs: transform etl:mask on host theirs", by="theirs"
    )
    result = work(child, JOB, 0, 1, new_token())
    assert "is not allowed: the setting transform.allowed lists none" in result["failed"]
    status = ledger.status(JOB)
    assert (status.state, status.last_error) == (JobState.FAILED, result["failed"])


def test_without_another_host_a_missing_transform_ends_the_job(
    child: Child, make_job: MakeJob
) -> None:
    make_job(JOB, ["1,a"], transforms=("etl:mask",))
    result = work(child, JOB, 0, 1, new_token())
    assert "transform etl:mask on host" in result["failed"]
    assert child.ledger.status(JOB).state is JobState.FAILED
