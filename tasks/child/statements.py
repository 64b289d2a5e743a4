"""Run one attempt of a unit of a lookup or exec, up to the result to commit.

Separate from the task, so that a worker that only loads does not import it.
"""

from __future__ import annotations

from cassandra import InvalidRequest, Unauthorized

from ringhaul.cluster.errors import translate_error
from ringhaul.statements.exec import Statement
from ringhaul.statements.job import StatementJob
from ringhaul.statements.lookup import LookupPlan
from ringhaul.statements.result import StatementResult
from ringhaul.statements.run import StatementHooks, StatementTarget, run_statement_unit
from tasks.child.process import Child
from tasks.child.unit import Attempt, Done
from tasks.cluster_settings import cluster_config


def run_statements(attempt: Attempt) -> Done:
    """Run one attempt of a unit of a lookup or exec."""
    child = attempt.child
    job = child.job_as(attempt.job_id, StatementJob)
    outcome = run_statement_unit(
        attempt.spec,
        attempt.unit,
        attempt.job_id,
        job,
        statement_target(child, job),
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


def statement_target(child: Child, job: StatementJob) -> StatementTarget:
    """Return where a lookup's or an exec's requests go. Raises as `Child.target` does."""
    text = job.statement
    if job.table is not None:
        text = LookupPlan.of(job.table, job.key, job.columns).statement
    # The result columns are part of the key: `SELECT *` has others after an ALTER TABLE.
    key = (text, job.result)
    if key not in child.statements:
        try:
            child.statements[key] = Statement.prepare(child.session(), text)
        except (InvalidRequest, Unauthorized) as error:
            where = cluster_config(child.settings).where
            raise translate_error(error, where=where, user=child.settings.cluster.user) from error
    return StatementTarget(
        session=child.session(),
        plane=child.plane(),
        statement=child.statements[key],
        retries_max=child.settings.load.retries_max,
        request_timeout_s=child.settings.cluster.request_timeout_s,
    )
