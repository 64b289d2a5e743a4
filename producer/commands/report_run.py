"""The work of `ringhaul report`: a job's report in a file, or on standard output."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from producer.commands.click_options import refuse_missing_folder
from producer.figures.newest_job import newest_job
from producer.options.connection import LedgerPlace
from producer.outputs.whole_file import check_replacing
from producer.report.job_report import report_path, report_text, write_report
from producer.services.ledger import reading_ledger


def run_report(job: str | None, place: LedgerPlace, output: str, *, show_data: bool) -> int:
    """Write the report of a job; return the exit code.

    `job`: None for the newest. `output`: a file, a folder, or - for standard output. `show_data`:
    with values and records of rejects.
    """
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
