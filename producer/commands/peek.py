"""`ringhaul peek`: options in, exit code out. The work is in `producer.run.rows`."""

from __future__ import annotations

from typing import Any

import rich_click as click

from producer.commands.options import connection_options
from producer.commands.table_argument import table_argument
from producer.options.reads import PeekOptions


@click.command("peek")
@table_argument(required=True)
@click.option(
    "-n",
    "--rows",
    type=click.IntRange(1, 100_000),
    default=5,
    show_default=True,
    help="At most this many rows.",
)
@click.option("--where", metavar="CONDITION", help="Only rows for which this holds, as in SQL.")
@click.option("--columns", metavar="A,B,...", help="Columns that are wanted [all].")
@click.option(
    "--format",
    "result_format",
    type=click.Choice(["auto", "table", "csv", "json"]),
    default="auto",
    show_default=True,
    help="auto: a table on a terminal, else csv.",
)
@click.option("--json", "as_json", is_flag=True, help="Like --format json: JSON Lines.")
@connection_options
def peek_command(**params: Any) -> int:
    """Show a few rows of a table, now.

    They come directly from the nodes, in the order of their tokens, without a job. On a terminal, a
    table that is too wide is shown with a line for each value.
    """
    from producer.run.rows import run_peek

    return run_peek(PeekOptions(**params))
