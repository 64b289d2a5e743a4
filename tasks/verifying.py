"""One attempt of a verification's unit: from the claim to what is committed.

Apart from the task, so that a worker that only loads does not import it.
"""

from __future__ import annotations

from typing import cast

from ringhaul.load.account import UnitHooks
from ringhaul.load.job import LoadJob
from ringhaul.load.unit import LoadUnit
from ringhaul.read.verify import VerifyPlan, run_verify_unit
from tasks.load import done_with
from tasks.transforms import transforms_of
from tasks.work import Attempt, Done


def run_verify(attempt: Attempt) -> Done:
    """One attempt of a verification's unit."""
    child = attempt.child
    job = cast(LoadJob, child.job(attempt.job_id))
    unit = LoadUnit.unpack(attempt.spec)
    plan = VerifyPlan.of(job.table, job.sources[unit.source])
    outcome = run_verify_unit(
        unit,
        job,
        child.target(plan.statement, job.table.keyspace),
        child.bounds,
        UnitHooks(
            tick=attempt.tick,
            throttle=attempt.throttle,
            rejects_max=child.ledger.records_max(attempt.job_id),
        ),
        transforms_of(child.settings, job.transforms),
    )
    return done_with(attempt, unit, outcome)
