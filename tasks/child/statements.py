"""Run one attempt of a unit of a lookup or exec, up to the result to commit.

Separate from the task, so that a worker that only loads does not import it.
"""

from __future__ import annotations

from ringhaul.statements.job import StatementJob, StatementResult
from ringhaul.statements.run import StatementHooks, run_statement_unit
from tasks.child.unit import Attempt, Done


def run_statements(attempt: Attempt) -> Done:
    """Run one attempt of a unit of a lookup or exec."""
    child = attempt.child
    job = child.job_as(attempt.job_id, StatementJob)
    outcome = run_statement_unit(
        attempt.spec,
        attempt.unit,
        attempt.job_id,
        job,
        child.statement_target(job),
        StatementHooks(
            tick=attempt.tick,
            throttle=attempt.throttle,
            losses=attempt.losses(),
        ),
    )
    stats = outcome.stats
    result = StatementResult(
        records=outcome.records,
        answered=outcome.records - outcome.rejected - stats.in_doubt,
        rejected=outcome.rejected,
        doubted=stats.in_doubt,
        missing=outcome.missing,
        not_applied=outcome.not_applied,
        not_kept=outcome.not_kept,
        rows=stats.rows,
        parts=len(outcome.parts),
        bytes_written=sum(part.bytes for part in outcome.parts),
        retries=stats.retries,
        elapsed_ms=outcome.elapsed_ms,
        cpu_ms=outcome.cpu_ms,
        attempt=attempt.number,
        rss_bytes_max=outcome.rss_bytes_max,
        worker=child.name,
    )
    return Done(
        result=result.pack(),
        totals={
            "rows": result.answered,
            "rejected": result.rejected + result.doubted,
            "bytes": stats.bytes,
            "retries": result.retries,
        },
        latencies=outcome.latencies,
        extra=outcome.extra,
        summary={"answered": result.answered, "rows": result.rows},
        undo=outcome.undo,
    )
