"""`ringhaul report JOB -o FILE`: a job as one HTML file, to mail or to keep."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import rich_click as click

from producer.commands.click_options import refuse_missing_folder
from producer.commands.options import ledger_options
from producer.options.connection import LedgerPlace
from producer.outputs.whole_file import check_replacing


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
    from producer.report.job_report import report_path, report_text, write_report
    from producer.report.newest import newest_job
    from producer.services.ledger import reading_ledger

    to_stdout, target = output == "-", Path(output)
    if not to_stdout:
        refuse_missing_folder(output)
    with reading_ledger(place) as ledger:
        if job is None:
            job = newest_job(ledger, none="this broker has no job")
        if to_stdout:
            text = report_text(ledger, job, show_data=show_data)
        else:
            check_replacing(os.fspath(report_path(target, job)))
            path = write_report(ledger, job, target, show_data=show_data)
    if to_stdout:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
    else:
        print(f"report written to {path}", file=sys.stderr)
    return 0
