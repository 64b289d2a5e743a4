"""Run one attempt of a verification's unit, up to the result to commit.

Separate from the task, so that a worker that only loads does not import it.
"""

from __future__ import annotations

from ringhaul.load.statement import Statements
from ringhaul.records.job import LoadJob
from ringhaul.records.unit import LoadUnit
from ringhaul.statements.verify import run_verify_unit, verify_statements
from tasks.child.records import run_records
from tasks.child.unit import Attempt, Done


def run_verify(attempt: Attempt) -> Done:
    """Run one attempt of a verification's unit."""
    return run_records(attempt, _statements, run_verify_unit)


def _statements(job: LoadJob, unit: LoadUnit) -> Statements:
    return verify_statements(job.table, job.sources[unit.source])
