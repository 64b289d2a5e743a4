"""Pauses and limits of a job while one of its units is at work."""

from __future__ import annotations

import pytest
from cassandra.cluster import Session

from producer.plan.plan import Plan
from producer.run.job import create_job
from ringhaul.ledger.labels import QUEUE_LABEL
from ringhaul.ledger.ledger import new_token
from ringhaul.ledger.pace import Limits, Pace
from ringhaul.statements.job import StatementJob
from tasks.child.load import run_load
from tasks.child.process import Child
from tasks.child.unit import Attempt, Done
from tasks.child.unit import work as work_on
from tests.integration.tasks.child.messages import JOB, work
from tests.integration.tasks.conftest import MakeJob
from tests.loads import statement_values, table_schema


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
        values=statement_values(table_schema({"id": "int"}, [])),
        spans=("id:1..2",),
        statement="UPDATE shop.visits SET n = n + 1 WHERE id = ?",
        repeatable=False,
    )
    plan = Plan(job=job, units=["0-1", "1-2"], target="update", headline="")
    create_job(child.ledger, JOB, plan, {QUEUE_LABEL: "unread"})
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
