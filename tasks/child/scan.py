"""Run one attempt of a unit of an unload, count or query, up to the result to commit.

Separate from the task, so that a worker that only loads does not import it.
"""

from __future__ import annotations

from ringhaul.cluster.connect import consistency_level
from ringhaul.scan.job import ReadJob
from ringhaul.scan.options import ScanOptions, ScanTarget
from ringhaul.scan.pages import PageReader
from ringhaul.scan.ranges import unpack_ranges
from ringhaul.scan.result import ReadResult
from ringhaul.scan.row_limit import Share
from ringhaul.scan.run import CHECKPOINT_S, ReadHooks, ReadOutcome, run_read_unit
from ringhaul.scan.sinks import Given, UnitOf
from ringhaul.scan.statement import first_page_rows, scan_statement
from tasks.child.failpoints import checkpoint_s
from tasks.child.process import Child
from tasks.child.unit import Attempt, Done
from tasks.cluster_settings import cluster_config
from tasks.transforms import transforms_of


def run_read(attempt: Attempt) -> Done:
    """Run one attempt of a read job's unit."""
    child = attempt.child
    job = child.job_as(attempt.job_id, ReadJob)
    outcome = _read(attempt, child, job)
    result = _result(child, attempt.number, outcome)
    return Done(
        result=result.pack(),
        totals={
            "rows": result.rows,
            "rejected": result.rejected,
            "bytes": result.bytes_read,
            "retries": result.retries,
            **({"missing": len(result.missing)} if result.missing else {}),
            # Without transforms, records = rows + rejects.
            **({"records": result.rows_given} if job.transforms else {}),
        },
        latencies=outcome.latencies,
        extra=outcome.extra,
        summary={"rows": result.rows, "parts": result.parts},
        undo=outcome.undo,
    )


def scan_target(
    child: Child, statement: str, keyspace: str, table: str = "the table"
) -> ScanTarget:
    """Return the source of rows for a SELECT over token ranges. `table` is for messages.

    Raises as `Child.target` does.
    """
    prepared = child.prepare(statement)
    if child.reader is None:
        child.reader = PageReader(child.session())
    config = cluster_config(child.settings)
    return ScanTarget(
        child.reader,
        prepared,
        keyspace,
        table=table,
        where=config.where,
        user=config.user,
    )


def _read(attempt: Attempt, child: Child, job: ReadJob) -> ReadOutcome:
    def reserve(rows: int) -> Share:
        assert job.limit is not None
        return Share(*attempt.reserve(rows, job.limit))

    return run_read_unit(
        UnitOf(attempt.job_id, attempt.unit, unpack_ranges(attempt.spec)),
        job,
        scan_target(child, scan_statement(job.select), job.table.keyspace, job.table.name),
        ScanOptions(
            consistency=consistency_level(job.consistency),
            request_timeout_s=child.settings.cluster.request_timeout_s,
            page_rows_first=first_page_rows(job.select, job.limit),
            retries_max=child.settings.load.retries_max,
            in_order=job.token_order,
            skip_failed=job.skip_failed,
        ),
        ReadHooks(
            tick=attempt.tick,
            checkpoint=attempt.checkpoint,
            trouble=attempt.trouble,
            throttle=attempt.throttle,
            rejects_max=child.ledger.records_max(attempt.job_id) if job.transforms else -1,
            reserve=reserve,
            checkpoint_s=checkpoint_s(CHECKPOINT_S),
        ),
        attempt.cursor(),
        transforms_of(child.settings, job.transforms),
    )


def _result(child: Child, attempt: int, outcome: ReadOutcome) -> ReadResult:
    given = outcome.given or Given()
    return ReadResult(
        rows=outcome.rows,
        rows_given=given.rows,
        dropped=given.dropped,
        rejected=given.rejected,
        rows_read=outcome.rows_read,
        bytes_read=outcome.bytes_read,
        parts=len(outcome.parts),
        bytes_written=sum(part.bytes for part in outcome.parts),
        pages=outcome.pages,
        retries=outcome.retries,
        splits=outcome.splits,
        missing=outcome.missing,
        unloadable=outcome.unloadable,
        elapsed_ms=outcome.elapsed_ms,
        cpu_ms=outcome.cpu_ms,
        attempt=attempt,
        rss_bytes_max=outcome.rss_bytes_max,
        worker=child.name,
    )
