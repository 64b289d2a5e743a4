"""`ringhaul report JOB -o FILE`: a job as one HTML file, to mail or to keep."""

from __future__ import annotations

import rich_click as click

from producer.commands.options import ledger_options
from producer.options.connection import LedgerPlace


@click.command("report")
@click.argument("job", required=False)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(allow_dash=True, writable=True),
    metavar="FILE|DIR|-",
    help="Output file (a folder: JOB.html; -: standard output).",
)
@click.option(
    "--show-data",
    is_flag=True,
    help="Include values and records of rejects, which are otherwise left out.",
)
@ledger_options
def report_command(job: str | None, output: str, show_data: bool, place: LedgerPlace) -> int:
    """Write a job's report as one HTML file.

    Without JOB, it describes the newest job. It needs no network and no other file, and may be
    mailed: figures, charts, rejects by reason, units, hosts, events, command and settings. There is
    no password in it, and no data of rows without --show-data. A running job is shown as it stands.
    """
    from producer.commands.report_run import run_report

    return run_report(job, place, output, show_data=show_data)
