"""The work of `ringhaul status`: a list of jobs, or a single job."""

from __future__ import annotations

from pathlib import Path

from producer.options.connection import LedgerPlace
from producer.report.job_list import print_jobs
from producer.services.ledger import reading_ledger


def run_list(place: LedgerPlace, limit: int, *, as_json: bool) -> int:
    """List the last jobs, `limit` at most; return the exit code."""
    with reading_ledger(place) as ledger:
        print_jobs(ledger, limit, as_json=as_json)
    return 0


def run_status(
    job: str, place: LedgerPlace, *, follow: bool, events: bool, as_json: bool, report: Path | None
) -> int:
    """Show a job, or its history if `events` is set; return the exit code. `follow`: until its end.
    `report`: where its report goes then."""
    with reading_ledger(place) as ledger:
        if events:
            from producer.report.job_history import print_history  # not for a list of jobs

            return print_history(ledger, job, as_json=as_json)
        from producer.run.status import show_job  # what follows jobs: not for a list of them

        return show_job(ledger, job, follow=follow, as_json=as_json, report=report)
