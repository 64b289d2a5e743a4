"""`ringhaul pause`, `resume`, `throttle` and `cancel`: control a running job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rich_click as click

from producer.commands.click_options import record_options
from producer.commands.options import ledger_options
from producer.commands.record_command import record_command
from producer.options.connection import LedgerPlace
from producer.options.control import ResumeOptions, ThrottleOptions
from producer.request.password import prompting_for_password
from producer.request.values import given_options
from producer.startup import take_sigterm
from ringhaul.ledger.states import JobState

if TYPE_CHECKING:
    from ringhaul.ledger.ledger import Ledger


@click.command("pause")
@click.argument("job")
@ledger_options
def pause_command(job: str, place: LedgerPlace) -> int:
    """Hold a running job.

    Its workers stop working on it within 2 s. `resume` continues it.
    """
    state = _changed(place, lambda ledger: ledger.pause(job))
    paused = state is JobState.RUNNING
    click.echo(f"{job} is {'PAUSED' if paused else state}", err=True)
    return 0 if paused else 2


@click.command("cancel")
@click.argument("job")
@ledger_options
def cancel_command(job: str, place: LedgerPlace) -> int:
    """End a running job.

    Its workers stop within 2 s. `resume` continues it from there, where that is possible.
    """
    state = _changed(place, lambda ledger: ledger.cancel(job))
    click.echo(f"{job} is {state}", err=True)
    return 0 if state is JobState.CANCELLED else 2


@record_command("resume", ResumeOptions)
def resume_command(**params: Any) -> int:
    """Continue a paused job, or run the missing units of a job that ended early.

    The job keeps its original options.
    """
    from producer.run.unpause import unpause

    take_sigterm()
    with prompting_for_password(
        ResumeOptions(**params, given=frozenset(given_options()))
    ) as options:
        if unpause(options):
            return 0
        from producer.run.resume import run_resume

        return run_resume(options)


@click.command("throttle")
@click.argument("job")
@record_options(ThrottleOptions)
@ledger_options
def throttle_command(job: str, place: LedgerPlace, **params: Any) -> int:
    """Limit a running job, or show its limits.

    New limits take effect within 2 s and replace all earlier ones.
    """
    from producer.run.throttle import run_throttle

    return run_throttle(job, place, ThrottleOptions(**params))


def _changed(place: LedgerPlace, change: Callable[[Ledger], JobState]) -> JobState:
    """Change a job in its ledger; return what `change` does: the state that it found or made."""
    from producer.services.ledger import reading_ledger

    with reading_ledger(place) as ledger:
        return change(ledger)
