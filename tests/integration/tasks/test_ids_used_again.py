"""A forgotten job's id may be reused: no state of the old job is left."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis

from config.celery_config import QUEUE_LOAD
from ringhaul.ledger import keys
from ringhaul.ledger.answers import Refusal
from ringhaul.ledger.labels import KIND_LABEL, QUEUE_LABEL
from ringhaul.ledger.ledger import Ledger
from ringhaul.records.job import LoadJob
from tasks.child.process import Child
from tasks.child.unit import Attempt, Done, work
from tasks.names import TaskNames
from tasks.publish import publish_next
from tests.integration.tasks.conftest import Connected
from tests.loads import load_job, load_source, table_schema

JOB = "monthly"
CLUSTER = Connected.cluster_name


@pytest.fixture
def child(connected: Connected) -> Child:
    return connected


def make_job(ledger: Ledger, path: str, *, cluster_name: str = CLUSTER, units: int = 2) -> LoadJob:
    """Create a job with issued units, of a file that is never read."""
    source = load_source(["id"], path=path, size_bytes=9)
    job = load_job(table_schema({"id": "int"}, ["id"]), source, cluster_name=cluster_name)
    ledger.create(JOB, {}, json.dumps(job.to_json()))
    ledger.add_units(JOB, 1, 0, [str(unit) for unit in range(units)])
    ledger.issue(JOB, units)
    return job


def forget(ledger: Ledger) -> None:
    """Expire the job, as 7 days after its end."""
    client = ledger.caller.client
    client.delete(*client.keys("ringhaul:{" + JOB + "}:*"))
    client.zrem(keys.JOBS, JOB)
    client.srem(keys.RUNNING, JOB)


def file_worked_on(child: Child, unit: int) -> str:
    """Run a unit, and return the file of the job that the worker sees."""
    seen: list[Any] = []

    def run(attempt: Attempt) -> Done:
        seen.append(child.job(JOB))
        return Done(result="", totals={"rows": 1})

    result = work(child, JOB, unit, 1, f"t{unit}", run)
    assert result == {"unit": unit}, result
    return str(seen[0].sources[0].file.path)


def test_a_job_with_a_reused_id_runs_with_its_own_files(child: Child) -> None:
    # Given a worker process that has run a unit of a job
    make_job(child.ledger, "/data/january.csv")
    assert file_worked_on(child, 0) == "/data/january.csv"
    throttle = child.throttle(JOB)
    # When the job is forgotten, and another one is created with its id
    forget(child.ledger)
    make_job(child.ledger, "/data/february.csv")
    # Then its files are read, not those of the old one
    assert file_worked_on(child, 0) == "/data/february.csv"
    assert child.throttle(JOB) is not throttle
    # And it is not read again for each unit
    kept = child.job(JOB)
    assert file_worked_on(child, 1) == "/data/february.csv"
    assert child.job(JOB) is kept


def test_an_old_job_of_another_cluster_does_not_block_the_new_one(child: Child) -> None:
    make_job(child.ledger, "/data/january.csv", cluster_name="staging")
    assert "staging" in work(child, JOB, 0, 1, "t", run_nothing)["skipped"]
    forget(child.ledger)
    make_job(child.ledger, "/data/february.csv")
    assert file_worked_on(child, 0) == "/data/february.csv"


def test_a_new_job_of_another_cluster_is_left_to_its_own_workers(child: Child) -> None:
    make_job(child.ledger, "/data/january.csv")
    assert file_worked_on(child, 0) == "/data/january.csv"
    forget(child.ledger)
    make_job(child.ledger, "/data/february.csv", cluster_name="staging")
    result = work(child, JOB, 0, 1, "t", run_nothing)
    assert "staging" in result["skipped"]
    assert child.ledger.status(JOB).leased == 0


def run_nothing(attempt: Attempt) -> Done:
    raise AssertionError("not to be worked on")


def test_a_stale_claim_of_a_reused_id_is_refused(child: Child) -> None:
    ledger = child.ledger
    make_job(ledger, "/data/january.csv")
    made = ledger.job_made(JOB)
    assert made == (ledger.job_spec(JOB), ledger.status(JOB).created_ms)
    assert ledger.claim(JOB, 0, 1, "t", 60_000, created_ms=made.created_ms - 1) is Refusal.OTHER
    assert ledger.status(JOB).leased == 0
    ledger.claim(JOB, 0, 1, "t", 60_000, created_ms=made.created_ms)
    assert ledger.status(JOB).leased == 1


def test_messages_go_to_the_queue_of_the_current_job(child: Child) -> None:
    ledger, client = child.ledger, child.ledger.caller.client
    # Given a job with a private queue whose units were published
    ledger.create(JOB, {KIND_LABEL: "unload", QUEUE_LABEL: "ringhaul.load.own"}, '{"a": 1}')
    ledger.add_units(JOB, 1, 0, ["0"])
    publish_next(ledger, JOB)
    assert tasks_in(client, "ringhaul.load.own") == [TaskNames.READ_UNIT]
    # When it is forgotten, and a load on the shared queue gets its id
    forget(ledger)
    ledger.create(JOB, {}, '{"a": 2}')
    ledger.add_units(JOB, 1, 0, ["0"])
    publish_next(ledger, JOB)
    # Then its units go to that queue, and to the load task
    assert tasks_in(client, "ringhaul.load.own") == [TaskNames.READ_UNIT]
    assert tasks_in(client, QUEUE_LOAD) == [TaskNames.LOAD_UNIT]


def tasks_in(client: redis.Redis, queue: str) -> list[str]:
    """Return the task names of the messages in a queue."""
    messages = client.lrange(f"ringhaul:mq:{queue}", 0, -1)
    return [json.loads(message)["headers"]["task"] for message in messages]
