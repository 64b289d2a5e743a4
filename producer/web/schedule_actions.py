"""What people can do to a schedule from its page: the same calls as `ringhaul schedule pause`.

A run is started by a beat, which has the settings and files that its steps need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from producer.schedule.overview import ScheduleRow
from producer.web.job_actions import Overtaken
from ringhaul.errors import UsageError
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.schedules import Beats, ScheduleBook


@dataclass(frozen=True, kw_only=True)
class ScheduleAction:
    """One thing that can be done to a schedule."""

    label: str  #: On the button.
    effect: str  #: What it does, for the page that asks for confirmation.
    done: str  #: What is said afterwards.
    #: Why it cannot be done now; empty: it can.
    refuse: Callable[[ScheduleRow], str]
    act: Callable[[Ledger, str], None]


def actions_for(row: ScheduleRow) -> dict[str, ScheduleAction]:
    """Return what can be done to a schedule now, by name."""
    return {name: action for name, action in ACTIONS.items() if not action.refuse(row)}


def act_on_schedule(ledger: Ledger, row: ScheduleRow, name: str) -> None:
    """Do it. Raises Overtaken if the schedule is not in a state for it any more, and UsageError."""
    action = ACTIONS[name]
    refused = action.refuse(row)
    if refused:
        raise Overtaken(f"{refused}: nothing was changed.")
    action.act(ledger, row.name)


def _refuse_run(row: ScheduleRow) -> str:
    if row.schedule.arrive:
        return f"{row.name} runs when files arrive, not at request"
    if row.standing.run is not None:
        return f"a run of {row.name} is in progress"
    return f"a run of {row.name} was requested already" if row.wanted else ""


def _refuse_pause(row: ScheduleRow) -> str:
    return f"{row.name} is paused already" if row.paused else ""


def _refuse_resume(row: ScheduleRow) -> str:
    return "" if row.paused else f"{row.name} is not paused"


def _run(ledger: Ledger, name: str) -> None:
    if not Beats(ledger.caller).alive():
        raise UsageError(
            "no beat is up, so nothing would start the run: start one with `ringhaul beat`, or run "
            f"`ringhaul schedule run {name}` on a host"
        )
    if not ScheduleBook(ledger.caller).want_run(name):
        raise Overtaken(f"a run of {name} was requested already: nothing was changed.")


def _pause(ledger: Ledger, name: str) -> None:
    ScheduleBook(ledger.caller).pause(name)


def _resume(ledger: Ledger, name: str) -> None:
    ScheduleBook(ledger.caller).resume(name)


#: By name, in the order in which a page shows them. The name is the last part of its path.
ACTIONS: Mapping[str, ScheduleAction] = {
    "run": ScheduleAction(
        label="Run now",
        effect="A beat starts a run within a few seconds, even if the schedule is paused.",
        done="A beat starts the run within a few seconds.",
        refuse=_refuse_run,
        act=_run,
    ),
    "pause": ScheduleAction(
        label="Pause",
        effect="No more runs start; one in progress continues.",
        done="The schedule is paused.",
        refuse=_refuse_pause,
        act=_pause,
    ),
    "resume": ScheduleAction(
        label="Resume",
        effect="Runs start again, from the next due time on.",
        done="The schedule continues at its next due time.",
        refuse=_refuse_resume,
        act=_resume,
    ),
}
