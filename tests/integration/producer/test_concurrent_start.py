"""Two commands that start one job at once (--job-id): its units must come from one plan."""

from __future__ import annotations

import pytest
import redis

from producer.plan.plan import Plan
from producer.run.job import _check_units, create_job
from ringhaul.errors import UsageError
from ringhaul.ledger.keys import bucket_key, job_key
from ringhaul.ledger.labels import QUEUE_LABEL
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import JobState
from ringhaul.scan.job import ReadJob
from tests.loads import table_schema

JOB = "ct-000001"


def plan(*units: str) -> Plan:
    table = table_schema({"id": "int"}, ["id"])
    job = ReadJob(kind="count", cluster_name="c", table=table, sql="SELECT count(*) FROM ks.t")
    return Plan(job=job, units=units, target="ks.t", headline="")


def handed_out(ledger: Ledger, *plans: Plan) -> None:
    for one in plans:
        create_job(ledger, JOB, one, {QUEUE_LABEL: "queue"})


def test_the_same_plan_twice_is_one_job(ledger: Ledger) -> None:
    same = plan("a", "b", "c")
    handed_out(ledger, same, same)
    _check_units(ledger, JOB, same)
    assert [spec for _, spec in ledger.unit_specs(JOB)] == ["a", "b", "c"]
    assert ledger.status(JOB).state == JobState.RUNNING


@pytest.mark.parametrize("other", [("a", "b", "x"), ("a", "b"), ("a", "b", "c", "d")])
@pytest.mark.parametrize("later", [False, True])
def test_another_plan_fails_the_job(ledger: Ledger, other: tuple[str, ...], later: bool) -> None:
    first, second = plan("a", "b", "c"), plan(*other)
    handed_out(ledger, first, second)
    kept = [spec for _, spec in ledger.unit_specs(JOB)]
    loser = second if kept == ["a", "b", "c"] else first
    assert kept != list(loser.units)
    if later:  # the other command checks as well, and finds its own units
        _check_units(ledger, JOB, first if loser is second else second)
    with pytest.raises(UsageError, match=f"two commands ran job {JOB} at the same time"):
        _check_units(ledger, JOB, loser)
    status = ledger.status(JOB)
    assert status.state == JobState.FAILED
    assert "added different units" in str(status)


def test_units_that_redis_lost_before_the_job_was_sealed_are_appended_again(
    ledger: Ledger, broker_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a Redis that returns without the end of its log, just before the job is sealed
    seal, losses = ledger.seal, [1]

    def seal_after_loss(job: str, epoch: int, units_count: int) -> int | None:
        if losses:
            kept = losses.pop()
            lost = [str(number) for number in range(kept, units_count)]
            with redis.Redis.from_url(broker_url) as client:
                client.hset(job_key(job, "meta"), mapping={"units": kept, "left": kept})
                client.hdel(bucket_key(job, "units", 0), *lost)
        return seal(job, epoch, units_count)

    monkeypatch.setattr(ledger, "seal", seal_after_loss)
    same = plan("a", "b", "c")
    handed_out(ledger, same)
    _check_units(ledger, JOB, same)
    status = ledger.status(JOB)
    assert (status.units, status.sealed, status.state) == (3, True, JobState.RUNNING)
