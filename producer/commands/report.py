"""`ringhaul report JOB -o FILE`: a job as one HTML file, to mail or to keep."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import rich_click as click

from producer.commands.options import ledger_options, refuse_missing_folder


@click.command("report")
@click.argument("job")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(allow_dash=True, writable=True),
    metavar="FILE|DIR|-",
    help="Write it here; into a folder as JOB.html; -: standard output.",
)
@click.option(
    "--show-data",
    is_flag=True,
    help="With values and records of rejects, which are left out otherwise.",
)
@ledger_options
def report_command(job: str, output: str, show_data: bool, config_file: Path | None) -> int:
    """Write a job's report as one HTML file.

    It needs no network and no other file, and may be mailed: figures, charts, rejects by reason,
    units, hosts, events, command and settings. There is no password in it, and no data of rows
    without --show-data. A running job is shown as it stands.
    """
    from producer.outputs.whole_file import check_replacing
    from producer.report.job_report import report_path, report_text, write_report
    from producer.services.ledger import reading_ledger

    if output == "-":
        with reading_ledger(config_file) as ledger:
            text = report_text(ledger, job, show_data=show_data)
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
        return 0
    refuse_missing_folder(output)
    place = Path(output)
    check_replacing(os.fspath(report_path(place, job)))
    with reading_ledger(config_file) as ledger:
        path = write_report(ledger, job, place, show_data=show_data)
    print(f"report written to {path}", file=sys.stderr)
    return 0
