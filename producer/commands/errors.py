"""`ringhaul errors JOB`: list the rejected records, and export them so that they load again."""

from __future__ import annotations

import rich_click as click

from producer.commands.options import ledger_options
from producer.options.connection import LedgerPlace


@click.command("errors")
@click.argument("job", required=False)
@click.option(
    "--limit",
    type=click.IntRange(0),
    metavar="N",
    default=20,
    show_default=True,
    help="Show at most N.",
)
@click.option(
    "--export",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Write the original records to FILE; -: stdout.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per reject on stdout.")
@ledger_options
def errors_command(
    job: str | None, limit: int, export: str | None, as_json: bool, place: LedgerPlace
) -> int:
    """List or export rejected records: file, line, column and reason.

    Without JOB, it takes the newest load, verify, lookup or exec. --export writes the original
    bytes of the records, under the header of the source, so that the file can be mended and loaded
    again with the same options; records with another header go to a further file.
    """
    from producer.commands.errors_run import run_errors

    return run_errors(job, place, limit, export, as_json=as_json)
