"""Run one attempt of a unit of records: of a load, or of a verification."""

from __future__ import annotations

from collections.abc import Callable

from ringhaul.load.statement import Statements
from ringhaul.records.account import UnitHooks, UnitOutcome
from ringhaul.records.job import LoadJob
from ringhaul.records.unit import LoadUnit, UnitResult
from tasks.child.process import Child
from tasks.child.unit import Attempt, Done
from tasks.transforms import transforms_of


def run_records(
    attempt: Attempt,
    statements_of: Callable[[LoadJob, LoadUnit], Statements],
    run_unit: Callable[..., UnitOutcome],
) -> Done:
    """Run one attempt of a unit of records with the statements for its source.

    `run_unit`: `run_load_unit`, or a function with the same parameters.
    """
    child = attempt.child
    job = child.job_as(attempt.job_id, LoadJob)
    unit = LoadUnit.unpack(attempt.spec)
    outcome = run_unit(
        unit,
        job,
        child.target(statements_of(job, unit), job.table.keyspace),
        child.bounds.within(
            requests_in_flight_max=job.in_flight_requests_max, batch_rows_max=job.batch_rows_max
        ),
        unit_hooks(attempt),
        transforms_of(child.settings, job.transforms),
    )
    return done_of(job, unit_result(child, unit, attempt.number, outcome), outcome)


def unit_hooks(attempt: Attempt) -> UnitHooks:
    """Return the hooks of a unit of records, which call its attempt."""
    return UnitHooks(
        tick=attempt.tick,
        throttle=attempt.throttle,
        rejects_max=attempt.child.ledger.records_max(attempt.job_id),
        losses=attempt.losses(),
    )


def done_of(job: LoadJob, result: UnitResult, outcome: UnitOutcome) -> Done:
    """Return what to commit for a unit of records with this result."""
    return Done(
        result=result.pack(),
        totals={
            "rows": result.written,
            "rejected": result.rejected,
            "bytes": result.input_bytes,
            "retries": result.retries,
            # Without these options, records = rows + rejects.
            **({"records": result.records} if job.transforms or job.where else {}),
            **({"repeated_times": outcome.repeated_times} if outcome.repeated_times else {}),
        },
        latencies=outcome.latencies,
        extra=outcome.rejects_blob,
        summary={"rows": result.written, "rejected": result.rejected},
        window_shrunk=result.window_shrunk,
        window_min=result.window_min,
    )


def unit_result(child: Child, unit: LoadUnit, attempt: int, outcome: UnitOutcome) -> UnitResult:
    """Return the result of a unit of records, without SSTables."""
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
        sstables=0,
        missed=0,
        worker=child.name,
    )
