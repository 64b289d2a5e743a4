"""Run one attempt of a load's unit, from the claimed spec to the result to commit."""

from __future__ import annotations

from functools import partial
from typing import cast

from ringhaul.load.run import run_load_unit
from ringhaul.load.statement import Statements, insert_statements
from ringhaul.records.job import LoadJob
from ringhaul.records.unit import LoadUnit
from tasks.child.records import run_records
from tasks.child.unit import Attempt, Done


def run_load(attempt: Attempt) -> Done:
    """Run one attempt of a load's unit."""
    job = cast(LoadJob, attempt.child.job(attempt.job_id))
    if job.sstables is not None or job.stream is not None:
        from tasks.child.sstables import run_sstables  # its kernels cost most loads time

        return run_sstables(attempt, job)
    # Add a microsecond for each millisecond of the job's age: no two attempts of a unit start in
    # the same millisecond.
    return run_records(attempt, _statements, partial(run_load_unit, later_us=attempt.age_ms))


def _statements(job: LoadJob, unit: LoadUnit) -> Statements:
    source = job.sources[unit.source]
    return insert_statements(
        job.table, source.columns, job.ttl_s, ttl_bound=source.ttl_bound, filled=source.filled
    )
