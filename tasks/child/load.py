"""One attempt of a load's unit: from the claim to what is committed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from ringhaul.load.run import run_load_unit
from ringhaul.load.statement import Statements, insert_statements
from ringhaul.records.job import LoadJob
from ringhaul.records.unit import LoadUnit, UnitResult
from ringhaul.units.account import UnitHooks, UnitOutcome
from tasks.child.process import Child
from tasks.child.unit import Attempt, Done
from tasks.transforms import transforms_of


def run_load(attempt: Attempt) -> Done:
    """One attempt of a load's unit."""
    # A microsecond for each millisecond of the job: no two attempts of a unit begin in one.
    return run_records(attempt, _statements, partial(run_load_unit, later_us=attempt.age_ms))


def run_records(
    attempt: Attempt,
    statements_of: Callable[[LoadJob, LoadUnit], Statements],
    run_unit: Callable[..., UnitOutcome],
) -> Done:
    """One attempt of a unit of records, by the statements for its source.

    `run_unit`: `run_load_unit`, or what takes the same.
    """
    child = attempt.child
    job = cast(LoadJob, child.job(attempt.job_id))
    unit = LoadUnit.unpack(attempt.spec)
    outcome = run_unit(
        unit,
        job,
        child.target(statements_of(job, unit), job.table.keyspace),
        child.bounds,
        UnitHooks(
            tick=attempt.tick,
            throttle=attempt.throttle,
            rejects_max=child.ledger.records_max(attempt.job_id),
            losses=attempt.losses(),
        ),
        transforms_of(child.settings, job.transforms),
    )
    result = _result(child, unit, attempt.number, outcome)
    return Done(
        result=result.pack(),
        totals={
            "rows": result.written,
            "rejected": result.rejected,
            "bytes": result.input_bytes,
            "retries": result.retries,
            # Elsewhere they are the rows and the rejects together.
            **({"records": result.records} if job.transforms or job.where else {}),
        },
        latencies=outcome.latencies,
        extra=outcome.rejects_blob,
        told={"rows": result.written, "rejected": result.rejected},
    )


def _statements(job: LoadJob, unit: LoadUnit) -> Statements:
    source = job.sources[unit.source]
    columns = [column for _, column in source.mapping]
    return insert_statements(job.table, columns, job.ttl_s, ttl_bound=source.ttl_field is not None)


def _result(child: Child, unit: LoadUnit, attempt: int, outcome: UnitOutcome) -> UnitResult:
    return UnitResult(
        source=unit.source,
        records=outcome.records,
        dropped=outcome.dropped,
        filtered=outcome.filtered,
        written=outcome.written,
        rejected=outcome.rejected,
        input_bytes=outcome.input_bytes,
        retries=outcome.retries,
        elapsed_ms=outcome.elapsed_ms,
        cpu_ms=outcome.cpu_ms,
        attempt=attempt,
        rss_bytes_max=outcome.rss_bytes_max,
        window_min=outcome.window.limit_min if outcome.window else 0,
        window_max=outcome.window.limit_max if outcome.window else 0,
        window_shrunk=outcome.window.shrunk if outcome.window else 0,
        worker=child.name,
    )
