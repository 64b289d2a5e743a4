"""Run one attempt of a load's unit, from the claimed spec to the result to commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from config.secrets import mask
from ringhaul.destination.cql import Cql
from ringhaul.destination.delivered import Delivered, Imports, Streaming
from ringhaul.destination.files import Files
from ringhaul.ledger.history import EventKind
from ringhaul.load.run import run_load_unit
from ringhaul.load.statement import Statements, insert_statements
from ringhaul.records.job import LoadJob
from ringhaul.records.unit import SENT_TO, TO_THE_END, LoadUnit, UnitResult
from ringhaul.units.account import UnitHooks, UnitOutcome
from tasks.child.process import Child
from tasks.child.unit import Attempt, Done
from tasks.connect import spill_bounds
from tasks.transforms import transforms_of

#: Text is hardly ever compressed to less than a tenth.
COMPRESSION_MAX = 10


def run_load(attempt: Attempt) -> Done:
    """Run one attempt of a load's unit."""
    job = attempt.child.job_as(attempt.job_id, LoadJob)
    return _RUNNERS[job.destination.name](attempt, job)


def _run_by_requests(attempt: Attempt, job: LoadJob) -> Done:
    """Run one attempt that sends rows as requests."""
    # Add a microsecond for each millisecond of the job's age: no two attempts of a unit start in
    # the same millisecond.
    return run_records(attempt, _statements, partial(run_load_unit, later_us=attempt.age_ms))


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
        _hooks(attempt),
        transforms_of(child.settings, job.transforms),
    )
    return _done(job, _result(child, unit, attempt.number, outcome), outcome)


def _run_to_files(attempt: Attempt, job: LoadJob) -> Done:
    """Run one attempt that writes files. The writer removes them if the commit does not count."""
    from ringhaul.load.to_sstables import run_unit_to_sstables  # its kernels cost most loads time

    output = job.destination
    assert isinstance(output, Files)
    child, unit = attempt.child, LoadUnit.unpack(attempt.spec)
    bounds = spill_bounds(child.settings, job)
    bounds.check_disk(_input_bytes(job, unit))
    done = run_unit_to_sstables(
        unit,
        attempt.unit,
        job,
        output.attempt_folder(attempt.job_id, attempt.unit, attempt.number, child.name),
        _hooks(attempt),
        bounds,
        transforms_of(child.settings, job.transforms),
    )
    result = _result(child, unit, attempt.number, done.outcome)
    result = result._replace(sstables=done.writer.sstables)
    return replace(_done(job, result, done.outcome), undo=done.writer.withdraw)


def _run_delivered(attempt: Attempt, job: LoadJob) -> Done:
    """Run one attempt that streams SSTables. One that does not count has sent the same rows as the
    one that does."""
    from ringhaul.load.to_sstables import run_unit_streamed  # its kernels cost most loads time

    destination = job.destination
    assert isinstance(destination, Delivered)
    child, unit = attempt.child, LoadUnit.unpack(attempt.spec)
    bounds = spill_bounds(child.settings, job)
    bounds.check_disk(_input_bytes(job, unit))
    done = run_unit_streamed(
        unit,
        job,
        child.stream_target(job, destination, attempt.job_id),
        _hooks(attempt),
        bounds,
        transforms_of(child.settings, job.transforms),
    )
    writer = done.writer
    result = _result(child, unit, attempt.number, done.outcome)
    result = result._replace(sstables=writer.sstables, missed=len(writer.missed))
    notes = [
        (EventKind.NODE_MISSED, mask(str(error))) for _, error in sorted(writer.missed.items())
    ]
    finished = _done(job, result, done.outcome)
    sent = {f"{SENT_TO}{node}": count for node, count in writer.sent_bytes.items()}
    totals = {**finished.totals, "streamed": sum(sent.values()), **sent}
    return replace(finished, notes=notes, totals=totals)


def _input_bytes(job: LoadJob, unit: LoadUnit) -> int:
    """Return the bytes of text of a unit; of a compressed file an estimate."""
    if unit.length_bytes != TO_THE_END:
        return unit.length_bytes
    return COMPRESSION_MAX * job.sources[unit.source].file.size_bytes


def _hooks(attempt: Attempt) -> UnitHooks:
    return UnitHooks(
        tick=attempt.tick,
        throttle=attempt.throttle,
        rejects_max=attempt.child.ledger.records_max(attempt.job_id),
        losses=attempt.losses(),
    )


def _done(job: LoadJob, result: UnitResult, outcome: UnitOutcome) -> Done:
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


def _statements(job: LoadJob, unit: LoadUnit) -> Statements:
    source = job.sources[unit.source]
    return insert_statements(
        job.table, source.columns, job.ttl_s, ttl_bound=source.ttl_bound, filled=source.filled
    )


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
        sstables=0,
        missed=0,
        worker=child.name,
    )


#: Destination -> how a unit's rows get there.
_RUNNERS: Mapping[str, Callable[[Attempt, LoadJob], Done]] = {
    Cql.name: _run_by_requests,
    Files.name: _run_to_files,
    Streaming.name: _run_delivered,
    Imports.name: _run_delivered,
}
