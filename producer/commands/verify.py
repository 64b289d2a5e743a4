"""`ringhaul verify`: options in, exit code out. The work is in `producer.run.load`: a verification
is a load that compares rows instead of writing them."""

from __future__ import annotations

from contextlib import ExitStack

import rich_click as click

from producer.commands.job_command import job_command
from producer.commands.options import connection_options, following_options, sharing_options
from producer.commands.record_options import record_options
from producer.options.load import LoadOptions
from ringhaul.ledger.kinds import JobKind


@click.command("verify")
@record_options
@click.option(
    "--nulls",
    type=click.Choice(["unset", "tombstone"]),
    default="unset",
    show_default=True,
    help="How an empty field is compared. unset: not at all; tombstone: the column must be null.",
)
@click.option(
    "--max-errors",
    metavar="N|N%",
    help="Stop when more records are not the same [1000]; -1: never.",
)
@click.option(
    "--times",
    is_flag=True,
    help="Compare write times and TTLs, too: the fields writetime(COLUMN) and ttl(COLUMN).",
)
@click.option("--consistency", metavar="LEVEL", help="Consistency level for reads [LOCAL_QUORUM].")
@click.option("--unit-size", metavar="BYTES", help="Size of one unit of work, e.g. 16M [adaptive].")
@click.option("--detach", is_flag=True, help="Leave the job to the workers and return.")
@sharing_options
@following_options
@connection_options
@job_command(JobKind.VERIFY)
def verify_command(options: LoadOptions) -> int:
    """Compare files with a table, record by record; change nothing.

    SOURCE (CSV, JSON Lines or Parquet) and the options are those of a load. `ringhaul errors JOB`
    lists the records by which a load would change something, and exports them to be loaded.
    """
    from producer.services.start import start_load

    with ExitStack() as stack:
        services = start_load(stack, options)
        # Imported now, while the services start: both take as long.
        from producer.run.load import run_load

        return run_load(options, services)
