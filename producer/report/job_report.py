"""Write the report of a job: one HTML file that needs nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from producer.figures.job_detail import look_at_job
from producer.figures.outcome import Closing
from producer.outputs.whole_file import whole_file
from producer.report.job_html import job_report
from ringhaul.errors import OutputUnusable, UsageError
from ringhaul.ledger.ledger import Ledger


def report_text(
    ledger: Ledger, job: str, *, show_data: bool = False, closing: Closing | None = None
) -> str:
    """Return the report of a job. `closing`: the job's closing if the caller has it.

    `show_data`: whether to show values and records of rejects. Raises JobMissing; JobDamaged if
    Redis lost part of the job.
    """
    detail = look_at_job(ledger, job, show_data=show_data, rejects_max=None, closing=closing)
    return job_report(detail)


def report_path(place: Path, job: str) -> Path:
    """Return the file that a report goes to: `place`, or JOB.html in it if it is a folder."""
    return place / f"{job}.html" if place.is_dir() else place


def write_report(
    ledger: Ledger,
    job: str,
    place: Path,
    *,
    show_data: bool = False,
    closing: Closing | None = None,
) -> Path:
    """Write the report of a job to a file, or to JOB.html in a folder; return the file.

    The file is replaced atomically. Raises as `report_text` does, and `OutputUnusable` if the file
    cannot be written.
    """
    path = report_path(place, job)
    text = report_text(ledger, job, show_data=show_data, closing=closing)
    try:
        with whole_file(os.fspath(path)) as out:
            out.write(text.encode())
    except UsageError as error:  # the folder was there when the command began
        raise OutputUnusable(str(error)) from error
    return path
