"""`ringhaul count` and `ringhaul query`: options in, exit code out."""

from __future__ import annotations

from contextlib import ExitStack

from producer.commands.job_command import job_command
from producer.options.reads import CountOptions, QueryOptions
from ringhaul.ledger.kinds import JobKind


@job_command(JobKind.COUNT, CountOptions)
def count_command(options: CountOptions) -> int:
    """Count rows: all, by token range, by host, or in the largest partitions."""
    from producer.services.start import start_job

    with ExitStack() as stack:
        services = start_job(stack, options, JobKind.COUNT)
        from producer.run.query import run_count  # while the services start

        return run_count(options, services)


@job_command(JobKind.QUERY, QueryOptions)
def query_command(options: QueryOptions) -> int:
    """Aggregate a table with a SELECT, or show a few of its rows.

    SELECT ... FROM KEYSPACE.TABLE [WHERE] [GROUP BY] [HAVING] [ORDER BY] [LIMIT].

    Workers aggregate token ranges; the partial results are merged, each exactly once. A SELECT of
    rows needs a LIMIT, and makes no job.
    """
    from producer.request.scan import wants_rows

    if wants_rows(options.sql):
        from producer.run.rows import run_row_query

        return run_row_query(options)
    from producer.services.start import start_job

    with ExitStack() as stack:
        services = start_job(stack, options, JobKind.QUERY)
        from producer.run.query import run_query  # while the services start

        return run_query(options, services)
