"""Long units: waiting for a rate limit is allowed, working without an end is not."""

from __future__ import annotations

import json
import time

import pytest

from ringhaul.dataplane.pacing import Pacing
from ringhaul.ledger.pace import Limits, Pace
from tasks.child.process import Child
from tasks.child.unit import Attempt, Done, work
from tests.integration.tasks.conftest import Connected
from tests.loads import load_job, load_source, table_schema

JOB = "ld-000001"


@pytest.fixture
def hasty(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> Child:
    """A child whose units may work for a second, and a job with one unit."""
    monkeypatch.setattr("tasks.child.unit.RENEW_S_MAX", 0.05)
    settings = connected.settings
    worker = settings.worker.model_copy(update={"time_limit_soft_s": 1.0})
    connected.settings = settings.model_copy(update={"worker": worker})
    job = load_job(
        table_schema({"id": "int"}, ["id"]),
        load_source(["id"], path="/data/in.csv", size_bytes=9),
        cluster_name=connected.cluster_name,
    )
    connected.ledger.create(JOB, {}, json.dumps(job.to_json()))
    connected.ledger.add_units(JOB, 1, 0, ["0"])
    connected.ledger.issue(JOB, 1)
    return connected


def test_waiting_for_the_rate_does_not_count_as_work(hasty: Child) -> None:
    # Given a job whose rate makes its unit take two seconds, twice its limit
    hasty.ledger.throttle(JOB, Pace(limits=Limits(rows_per_s=100)))

    def paced(attempt: Attempt) -> Done:
        pacing = Pacing(attempt.throttle, lambda: attempt.tick(0, 0, 0))
        for _ in range(25):
            pacing.pay(10, 100)
        return Done(result="", totals={"rows": 250})

    began_s = time.monotonic()
    assert work(hasty, JOB, 0, 1, "t", paced) == {"unit": 0}
    assert time.monotonic() - began_s > 1.0
    assert hasty.ledger.status(JOB).totals == {"rows": 250}


def test_an_endless_unit_is_released_with_the_reason(hasty: Child) -> None:
    def endless(attempt: Attempt) -> Done:
        while True:
            time.sleep(0.02)
            attempt.tick(0, 0, 0)

    result = work(hasty, JOB, 0, 1, "t", endless)
    assert "worker.time_limit_soft_s" in result["released"]
    status = hasty.ledger.status(JOB)
    assert (status.leased, status.last_error) == (0, result["released"])
