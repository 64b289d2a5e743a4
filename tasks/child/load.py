"""Run one attempt of a load's unit, from the claimed spec to the result to commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ringhaul.destination.cql import Cql
from ringhaul.destination.delivered import Imports, Streaming
from ringhaul.destination.files import Files
from ringhaul.load.run import run_load_unit
from ringhaul.load.statement import Statements, insert_statements
from ringhaul.records.job import LoadJob
from ringhaul.records.unit import LoadUnit
from tasks.child.records import run_records
from tasks.child.unit import Attempt, Done


def run_load(attempt: Attempt) -> Done:
    """Run one attempt of a load's unit."""
    job = attempt.child.job_as(attempt.job_id, LoadJob)
    return _RUNNERS[job.destination.name](attempt, job)


def _run_by_requests(attempt: Attempt, job: LoadJob) -> Done:
    """Run one attempt that sends rows as requests."""
    # Add a microsecond for each millisecond of the job's age: no two attempts of a unit start in
    # the same millisecond.
    return run_records(attempt, _statements, partial(run_load_unit, later_us=attempt.age_ms))


def _run_sstables(attempt: Attempt, job: LoadJob) -> Done:
    """Run one attempt whose rows become SSTables."""
    from tasks.child.sstables import run_sstables  # its kernels cost most loads time

    return run_sstables(attempt, job)


def _statements(job: LoadJob, unit: LoadUnit) -> Statements:
    source = job.sources[unit.source]
    return insert_statements(
        job.table, source.columns, job.ttl_s, ttl_bound=source.ttl_bound, filled=source.filled
    )


#: Destination -> how a unit's rows get there.
_RUNNERS: Mapping[str, Callable[[Attempt, LoadJob], Done]] = {
    Cql.name: _run_by_requests,
    Files.name: _run_sstables,
    Streaming.name: _run_sstables,
    Imports.name: _run_sstables,
}
