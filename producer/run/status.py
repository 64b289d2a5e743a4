"""The state of one job for `status`: as it is now, or followed to its end."""

from __future__ import annotations

from pathlib import Path

from producer.report.reporter import Shown, close_job
from producer.report.step_without_job import raise_step_without_job
from producer.run.finish import publish_watched
from producer.run.follow import follow_job
from producer.run.gone import reporting_lost_job
from ringhaul.errors import OutputUnavailable, OutputUnusable
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.job_status import JobStatus
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

    def publish(status: JobStatus) -> None:
        try:
            publish_watched(ledger, status, shown.say)
        except JobDamaged:  # the closing report says so
            return
        except (OutputUnusable, OutputUnavailable) as error:  # the job is over all the same
            shown.say(str(error))

    if follow and not status.finished:
        with reporting_lost_job(job_id, read_job(ledger, job_id)):
            return follow_job(
                ledger,
                job_id,
                shown,
                on_end=publish,
            )
    if follow:
        publish(status)
    return close_job(ledger, job_id, shown)
