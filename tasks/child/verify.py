"""One attempt of a verification's unit: from the claim to what is committed.

Apart from the task, so that a worker that only loads does not import it.
"""

from __future__ import annotations

from ringhaul.records.job import LoadJob
from ringhaul.records.unit import LoadUnit
from ringhaul.statements.verify import VerifyPlan, run_verify_unit
from tasks.child.load import run_records
from tasks.child.unit import Attempt, Done


def run_verify(attempt: Attempt) -> Done:
    """One attempt of a verification's unit."""
    return run_records(attempt, _statement, run_verify_unit)


def _statement(job: LoadJob, unit: LoadUnit) -> str:
    return VerifyPlan.of(job.table, job.sources[unit.source]).statement
