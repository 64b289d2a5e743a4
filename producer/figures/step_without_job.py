"""Explain why a schedule's step has no job: its command ended before it made one."""

from __future__ import annotations

from producer.request.next_command import next_command
from ringhaul.errors import UsageError
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.schedules import ScheduleBook
from ringhaul.schedule.runs import step_of


def raise_step_without_job(ledger: Ledger, job: str) -> None:
    """Raise `UsageError` with the step's last error, if `job` is the id of a step that ended
    without making its job."""
    place = step_of(job)
    if place is None:
        return
    name, run_id, index = place
    run = ScheduleBook(ledger.caller).run(name, run_id)
    if run is None or not index < len(run.steps) or not run.steps[index].error:
        return
    step = run.steps[index]
    raise UsageError(
        f"there is no job {job}: `{step.command}`, step {index + 1} of schedule {name}, ended with "
        f"exit code {step.code} before it made one: {step.error}. "
        f"See `{next_command(f'schedule history {name}')}`"
    )
