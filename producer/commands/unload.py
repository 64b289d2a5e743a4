"""`ringhaul unload`: options in, exit code out. The work is in `producer.run.unload`."""

from __future__ import annotations

from contextlib import ExitStack

import rich_click as click

from producer.commands.job_command import job_command
from producer.commands.options import (
    connection_options,
    following_options,
    output_options,
    preserving_options,
    sharing_options,
    skip_failed_option,
)
from producer.commands.table_argument import table_argument
from producer.commands.value_options import spelling_options
from producer.request.options import UnloadOptions
from ringhaul.ledger.kinds import JobKind


@click.command("unload")
@table_argument(required=False)
@click.option(
    "--columns",
    metavar="A,B,...",
    help="Columns, writetime(COLUMN) and ttl(COLUMN) among them [all columns].",
)
@click.option(
    "-m",
    "--mapping",
    metavar="FIELD=COLUMN,...",
    help="Columns and the names of their fields; *=*: all others; writetime(*), ttl(*): of each.",
)
@preserving_options
@click.option("--where", metavar="CONDITION", help="Rows to unload, as in SQL.")
@click.option(
    "--query",
    "sql",
    metavar="SELECT",
    help="SELECT ... FROM KEYSPACE.TABLE [WHERE ...], in place of table, columns and WHERE.",
)
@click.option(
    "--transform",
    "transforms",
    multiple=True,
    metavar="MODULE:FUNCTION",
    help="Put rows through a function that the workers' settings allow; may be repeated.",
)
@click.option(
    "--max-errors",
    metavar="N|N%",
    help="Stop when a transform fails on more rows [1000]; -1: never.",
)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIR|FILE|URL|-",
    help="An empty or new folder, one file such as out.csv, a URL of them, or -: standard output.",
)
@click.option(
    "--partition-by",
    metavar="A,B,...",
    help="Folders named after these columns' values, such as year=2023/region=north.",
)
@click.option(
    "--single-file", is_flag=True, help="One file: -o names it, or the folder where it is made."
)
@click.option(
    "--file-name-format",
    metavar="PATTERN",
    help="Names of the files, with {number:06}, {keyspace}, {table}, {job}, or %06d.",
)
@click.option(
    "--format-profile",
    metavar="NAME",
    help="Options of [format.NAME] in ringhaul.toml; those on the command line win.",
)
@output_options
@spelling_options()
@click.option(
    "--max-rows-per-file", type=click.IntRange(1), metavar="N", help="Start a new file after N."
)
@click.option(
    "--max-file-size", metavar="BYTES", help="Start a new file after about this size, e.g. 256M."
)
@click.option(
    "--order",
    type=click.Choice(["any", "token"]),
    default="any",
    show_default=True,
    help="token: files sorted by name hold the rows in the order of their tokens.",
)
@click.option("--consistency", metavar="LEVEL", help="Consistency level for reads [LOCAL_QUORUM].")
@skip_failed_option
@click.option("--dry-run", is_flag=True, help="Print the plan, read no row.")
@click.option("--detach", is_flag=True, help="Leave the job to the workers and return.")
@sharing_options
@following_options
@connection_options
@job_command(JobKind.UNLOAD)
def unload_command(options: UnloadOptions) -> int:
    """Write a table's rows to files: CSV, JSON Lines or Parquet.

    Each file appears when it is complete; _manifest.json comes last and lists them. `-o out.csv`
    makes one file. `ringhaul load` loads them again.
    """
    from producer.services.start import start_job

    with ExitStack() as stack:
        services = start_job(stack, options, JobKind.UNLOAD, own_workers=options.output == "-")
        from producer.run.unload import run_unload  # while the services start

        return run_unload(options, services)
