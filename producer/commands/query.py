"""`ringhaul count` and `ringhaul query`: options in, exit code out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from producer.commands.job_command import job_command
from producer.options.reads import CountOptions, QueryOptions
from ringhaul.ledger.kinds import JobKind

if TYPE_CHECKING:
    from producer.services.start import Start


@job_command(JobKind.COUNT, CountOptions)
def count_command(options: CountOptions, start: Start) -> int:
    """Count rows: all, by token range, by host, or in the largest partitions."""
    with start() as services:
        from producer.run.query import run_count  # while the services start

        return run_count(options, services)


@job_command(JobKind.QUERY, QueryOptions)
def query_command(options: QueryOptions, start: Start) -> int:
    """Aggregate a table with a SELECT, or show a few of its rows.

    SELECT ... FROM KEYSPACE.TABLE [WHERE] [GROUP BY] [HAVING] [ORDER BY] [LIMIT].

    Workers aggregate token ranges; the partial results are merged, each exactly once. A SELECT of
    rows needs a LIMIT, and makes no job.
    """
    from producer.request.select_checks import wants_rows

    if wants_rows(options.sql):
        from producer.run.rows import run_row_query

        return run_row_query(options)
    with start() as services:
        from producer.run.query import run_query  # while the services start

        return run_query(options, services)
