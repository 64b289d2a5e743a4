"""The state of one job, which `status` shows as it is now, or follows to its end."""

from __future__ import annotations

from pathlib import Path

from producer.figures.step_without_job import raise_step_without_job
from producer.report.reporter import Shown, close_job
from producer.run.finish import WatchedEnd
from producer.run.follow import Followed, follow_job
from producer.run.lost_job import reporting_lost_job
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobMissing
from tasks.kinds import read_job


def show_job(
    ledger: Ledger, job_id: str, *, follow: bool, as_json: bool, report: Path | None = None
) -> int:
    """Show a job, or follow it, and return the exit code of its command. `report`: where its report
    goes; None: nowhere. Raises `JobMissing`."""
    shown = Shown(
        progress="json" if as_json and follow else "auto", as_json=as_json, report_place=report
    )
    try:
        status = ledger.status(job_id)
    except JobDamaged:
        return close_job(ledger, job_id, shown)
    except JobMissing:
        raise_step_without_job(ledger, job_id)
        raise

    ending = WatchedEnd(shown.say)
    if follow and not status.finished:
        with reporting_lost_job(job_id, read_job(ledger, job_id)):
            return follow_job(Followed(job_id=job_id, ledger=ledger, shown=shown, ending=ending))
    if follow:
        ending.end(ledger, status)
    return close_job(ledger, job_id, shown)
