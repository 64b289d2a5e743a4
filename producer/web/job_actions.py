"""What people can do to a job from its page: the same calls as `ringhaul pause` and the like.

A page shows a job as it was a moment ago. Each action therefore says in which state its page saw
the job, and does nothing if that has changed: somebody else was faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from producer.options.control import ThrottleOptions
from producer.request.next_command import next_command
from producer.run.throttle import wanted_pace
from producer.run.unpause import is_staffed
from ringhaul.errors import RinghaulError, UsageError
from ringhaul.ledger.history import BY_PAGE
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import RESUMABLE, JobState
from tasks.publish import publish_next

#: Longest value of a field of a form.
_CHARS_MAX = 200

#: The values of a form by the names of its fields.
Form = Mapping[str, str]


class Overtaken(RinghaulError):
    """The job or schedule is no longer in the state in which the page showed it."""


@dataclass(frozen=True, kw_only=True)
class JobAction:
    """One thing that can be done to a job."""

    label: str  #: On the button.
    effect: str  #: What it does, for the page that asks for confirmation.
    done: str  #: What is said afterwards.
    states: frozenset[str]  #: In which it can be done, see `JobStatus.state_name`.
    act: Callable[[Ledger, JobStatus, Form], None]
    grave: bool = False  #: It ends something.


def actions_for(state: str) -> dict[str, JobAction]:
    """Return what can be done to a job in a state, by name."""
    return {name: action for name, action in ACTIONS.items() if state in action.states}


def act_on_job(ledger: Ledger, job: str, name: str, form: Form) -> None:
    """Do what the form of a page says. `form["seen"]`: the state in which the page saw the job.

    Raises Overtaken, UsageError for a value that cannot be used, and JobMissing.
    """
    action = ACTIONS[name]
    status = ledger.status(job)
    seen = form.get("seen", "")[:_CHARS_MAX]
    if status.state_name != seen or status.state_name not in action.states:
        raise Overtaken(_overtaken_text(status, seen))
    action.act(ledger, status, form)


def _overtaken_text(status: JobStatus, seen: str) -> str:
    was = f", and was {seen} when this page was made" if seen != status.state_name else ""
    text = f"{status.job} is {status.state_name}{was}: nothing was changed."
    if status.state in RESUMABLE:
        text += f" To continue it, run `{next_command(f'resume {status.job}')}` on a host."
    return text


def _pause(ledger: Ledger, status: JobStatus, form: Form) -> None:
    _expect_running(status.job, ledger.pause(status.job, by=BY_PAGE))


def _resume(ledger: Ledger, status: JobStatus, form: Form) -> None:
    if not is_staffed(ledger, status):
        raise Overtaken(
            f"No running worker takes units of {status.job}: nothing was changed. Start workers, "
            f"or run `{next_command(f'resume {status.job}')}` on a host."
        )
    if not ledger.unpause(status.job, by=BY_PAGE):
        raise Overtaken(f"{status.job} was resumed in the meantime by somebody else.")
    if not ledger.status(status.job).finished:
        publish_next(ledger, status.job)


def _cancel(ledger: Ledger, status: JobStatus, form: Form) -> None:
    after = ledger.cancel(status.job, by=BY_PAGE)
    if after is not JobState.CANCELLED:
        raise Overtaken(f"{status.job} has ended in the meantime: it is {after}.")


def _throttle(ledger: Ledger, status: JobStatus, form: Form) -> None:
    pace = wanted_pace(throttle_options(form))
    if pace is None:
        raise UsageError("give at least one limit, or remove all limits")
    _expect_running(status.job, ledger.throttle(status.job, pace, by=BY_PAGE))


def _priority(ledger: Ledger, status: JobStatus, form: Form) -> None:
    wanted = form.get("priority", "")[:_CHARS_MAX]
    _expect_running(status.job, ledger.priority(status.job, wanted, by=BY_PAGE))


def _expect_running(job: str, after: JobState) -> None:
    if after is not JobState.RUNNING:
        raise Overtaken(f"{job} has ended in the meantime: it is {after}.")


def throttle_options(form: Form) -> ThrottleOptions:
    """Return the options of `ringhaul throttle` that a form gives. Raises UsageError."""
    return ThrottleOptions(
        rows_per_second=_whole(form, "rows_per_second", "rows per second"),
        mb_per_second=_number(form, "mb_per_second", "megabytes per second"),
        in_flight=_whole(form, "in_flight", "requests in flight"),
        between=tuple(_text(form, "between").replace(",", " ").split()),
        timezone=_text(form, "timezone") or None,
        off=bool(form.get("off")),
        as_json=False,
    )


def _text(form: Form, name: str) -> str:
    return form.get(name, "").strip()[:_CHARS_MAX]


def _whole(form: Form, name: str, what: str) -> int | None:
    text = _text(form, name)
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 2**53):
        raise UsageError(f"{what}: give a whole number above 0")
    return int(text)


def _number(form: Form, name: str, what: str) -> float | None:
    text = _text(form, name)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 2**40:
        raise UsageError(f"{what}: give a number above 0")
    return value


_OPEN = frozenset({"RUNNING", "PAUSED"})

#: By name, in the order in which a page shows them. The name is the last part of its path.
ACTIONS: Mapping[str, JobAction] = {
    "pause": JobAction(
        label="Pause",
        effect="Workers stop working on it within 2 s, and work on other jobs. Nothing is lost.",
        done="The job is paused: workers stop within 2 s.",
        states=frozenset({"RUNNING"}),
        act=_pause,
    ),
    "resume": JobAction(
        label="Resume",
        effect="Workers continue the job where they left it.",
        done="The job continues.",
        states=frozenset({"PAUSED"}),
        act=_resume,
    ),
    "throttle": JobAction(
        label="Limits",
        effect="New limits take effect within 2 s, and replace all earlier ones.",
        done="The limits take effect within 2 s.",
        states=_OPEN,
        act=_throttle,
    ),
    "priority": JobAction(
        label="Priority",
        effect="Jobs that share workers get units in the ratio 4 (high) to 2 (normal) to 1 (low).",
        done="The priority is changed.",
        states=_OPEN,
        act=_priority,
    ),
    "cancel": JobAction(
        label="Cancel job",
        effect=(
            "The job ends, and workers stop within 2 s. What it has done stays done. "
            "The command ringhaul resume continues it from there, where that is possible."
        ),
        done="The job is cancelled: workers stop within 2 s.",
        states=_OPEN,
        act=_cancel,
        grave=True,
    ),
}
