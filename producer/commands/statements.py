"""`ringhaul lookup` and `ringhaul exec`: options in, exit code out. The work is in
`producer.run.statements`."""

from __future__ import annotations

from contextlib import ExitStack

import rich_click as click

from producer.commands.job_command import job_command
from producer.commands.options import (
    Command,
    connection_options,
    following_options,
    output_options,
    sharing_options,
)
from producer.commands.record_options import values_options
from producer.commands.table_argument import table_argument
from producer.commands.value_options import spelling_options
from producer.options.statements import ExecOptions, LookupOptions
from ringhaul.ledger.kinds import JobKind


def answer_options(command: Command) -> Command:
    """Add options for what both commands do with the answers."""
    for option in reversed(
        [
            click.option(
                "-o",
                "--output",
                default="-",
                show_default=True,
                metavar="DIR|URL|-",
                help="An empty or new folder, a URL of one, or - for standard output.",
            ),
            click.option(
                "--max-rows-per-file",
                type=click.IntRange(1),
                metavar="N",
                help="Start a new file after N rows.",
            ),
            click.option(
                "--max-file-size",
                metavar="BYTES",
                help="Start a new file after about this size, e.g. 256M.",
            ),
            click.option(
                "--order",
                type=click.Choice(["input", "any"]),
                default="input",
                show_default=True,
                help="Answers in the order of the input, or as they come.",
            ),
            click.option(
                "--consistency", metavar="LEVEL", help="Consistency level [LOCAL_QUORUM]."
            ),
        ]
    ):
        command = option(command)
    return output_options(spelling_options()(command))


@click.command("lookup")
@table_argument(required=True)
@click.option(
    "--keys",
    required=True,
    metavar="FILE|-",
    help="The keys, in a file or on standard input.",
)
@click.option(
    "--key",
    metavar="A,B,...",
    help="Columns of a key: the partition key, and first clustering columns [partition key].",
)
@click.option("--columns", metavar="A,B,...", help="Columns that are wanted [all].")
@values_options
@answer_options
@sharing_options
@following_options
@connection_options
@job_command(JobKind.LOOKUP)
def lookup_command(options: LookupOptions) -> int:
    """Read the rows of a list of keys.

    Each key is read from the nodes that hold its rows.
    """
    from producer.services.start import start_job

    with ExitStack() as stack:
        services = start_job(stack, options, JobKind.LOOKUP, own_workers=options.output == "-")
        from producer.run.statements import run_lookup  # while the services start

        return run_lookup(options, services)


@click.command("exec")
@click.argument("statement", metavar="STATEMENT")
@click.option(
    "--params",
    metavar="FILE|-",
    help="Values of the markers, in a file or on standard input.",
)
@click.option(
    "--range",
    "ranges",
    multiple=True,
    metavar="NAME:FIRST..LAST[/STEP]",
    help="Values of a marker: day:2024-01-01..2024-12-31, bucket:0..999; combined if several.",
)
@click.option(
    "--nulls",
    type=click.Choice(["unset", "tombstone"]),
    default="unset",
    show_default=True,
    help="What an empty field binds. unset: leave its column as it is; tombstone: null.",
)
@values_options
@answer_options
@sharing_options
@following_options
@connection_options
@job_command(JobKind.EXEC)
def exec_command(options: ExecOptions) -> int:
    """Run a CQL statement once for each row of values.

    The values fill its ? markers.

    SELECT, INSERT, UPDATE, DELETE and counters. What must not be done twice is never sent twice.
    """
    from producer.services.start import start_job

    with ExitStack() as stack:
        services = start_job(stack, options, JobKind.EXEC)
        from producer.run.statements import run_exec  # while the services start

        return run_exec(options, services)
