"""`ringhaul count` and `ringhaul query`: options in, exit code out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import rich_click as click

from producer.commands.job_command import job_command
from producer.commands.options import (
    connection_options,
    following_options,
    sharing_options,
    skip_failed_option,
)
from producer.commands.table_argument import table_argument
from producer.options.reads import CountOptions, QueryOptions
from ringhaul.ledger.kinds import JobKind

#: Formats of a result. `table` is for people.
RESULT_FORMATS = ("auto", "table", "csv", "json", "parquet")


def result_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the format of a result and where it goes."""
    form = click.option(
        "--format",
        "result_format",
        type=click.Choice(RESULT_FORMATS),
        default="auto",
        show_default=True,
        help="auto: a table on a terminal, else csv; in a file what its suffix says.",
    )
    place = click.option(
        "-o", "--output", metavar="FILE", help="Write the result here [standard output]."
    )
    return form(place(command))


@click.command("count")
@table_argument(required=True)
@click.option("--where", metavar="CONDITION", help="Rows to count, as in SQL.")
@click.option(
    "--by",
    type=click.Choice(["total", "range", "host"]),
    default="total",
    show_default=True,
    help="One number, or one for each token range of the ring, or for each host that owns them.",
)
@click.option(
    "--top", type=click.IntRange(1, 100_000), metavar="N", help="The N partitions with most rows."
)
@result_options
@click.option("--consistency", metavar="LEVEL", help="Consistency level for reads [LOCAL_QUORUM].")
@skip_failed_option
@sharing_options
@following_options
@connection_options
@job_command(JobKind.COUNT)
def count_command(options: CountOptions) -> int:
    """Count rows: all, by token range, by host, or in the largest partitions."""
    from producer.services.start import start_job

    with ExitStack() as stack:
        services = start_job(stack, options, JobKind.COUNT)
        from producer.run.query import run_count  # while the services start

        return run_count(options, services)


@click.command("query")
@click.argument("sql", metavar="SELECT")
@result_options
@click.option("--consistency", metavar="LEVEL", help="Consistency level for reads [LOCAL_QUORUM].")
@skip_failed_option
@sharing_options
@following_options
@connection_options
@job_command(JobKind.QUERY)
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
