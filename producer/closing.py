"""How a job ended, whatever its kind: exit code, closing table, summary for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from producer.given_up import given_up_lines
from producer.hints import next_command
from producer.snapshot import retrying
from ringhaul.errors import (
    EXIT_CANCELLED,
    EXIT_COMPLETE,
    EXIT_FATAL,
    EXIT_INTERRUPTED,
    EXIT_REJECTS,
    EXIT_STILL_RUNNING,
    EXIT_TOO_MANY_ERRORS,
)
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobStatus
from ringhaul.ledger.states import JobState
from ringhaul.load.kinds import LOAD_KINDS
from tasks.publish import KIND_LABEL

EXIT_CODES: Mapping[JobState, int] = {
    JobState.RUNNING: EXIT_STILL_RUNNING,
    JobState.COMPLETE: EXIT_COMPLETE,
    JobState.PARTIAL: EXIT_REJECTS,
    # Some of what was asked for was not done: never a success.
    JobState.QUARANTINED: EXIT_FATAL,
    JobState.STOPPED: EXIT_TOO_MANY_ERRORS,
    JobState.CANCELLED: EXIT_CANCELLED,
    JobState.FAILED: EXIT_FATAL,
}


@dataclass(frozen=True, kw_only=True)
class Closing:
    """What a command that followed a job, or looks at it later, has to say."""

    exit_code: int
    figures: Sequence[str]  #: lines of counts and times
    verdict: Sequence[str]  #: lines: how it ended, and the next command where there is one
    data: dict[str, Any]  #: for programs, on stdout

    @property
    def text(self) -> str:
        """For people, on stderr."""
        return "\n".join([*self.figures, *self.verdict])

    @property
    def alarm(self) -> str:
        """What people are told of a job that was to be quiet and did not end well."""
        return "\n".join([f"{self.data['job']} {self.verdict[0]}", *self.verdict[1:]])


def read_closing(ledger: Ledger, job_id: str, *, interrupted: bool = False) -> Closing:
    """Compute it from what the ledger holds. `interrupted`: by Ctrl-C, in this command."""
    status = ledger.status(job_id)
    closing = _closing_of(ledger, status, interrupted=interrupted)
    return replace(closing, verdict=[*closing.verdict, *given_up_lines(ledger, status)])


def _closing_of(ledger: Ledger, status: JobStatus, *, interrupted: bool) -> Closing:
    kind = status.labels.get(KIND_LABEL, "load")
    if kind in LOAD_KINDS:
        from producer.summary import load_closing

        return load_closing(ledger, status, interrupted=interrupted)
    if kind in ("lookup", "exec"):
        from producer.ask_summary import ask_closing

        return ask_closing(ledger, status, interrupted=interrupted)
    from producer.read_summary import read_job_closing  # what loads do not need to import

    return read_job_closing(ledger, status, interrupted=interrupted)


def unfinished(status: JobStatus, part: str) -> list[str]:
    """What there is to say of a job that is not over, of which `part` is done."""
    limits = [f" limits   {status.pace}"] if str(status.pace) else []
    if status.paused:
        return [f" paused: {part}", *limits, next_line(f"resume {status.job}")]
    reason = retrying(status)
    return [
        f" still running: {part}",
        *([f" retrying {reason}"] if reason else []),
        *limits,
        next_line(f"status -f {status.job}"),
    ]


def next_line(command: str) -> str:
    """The next command, such as of `resume JOB`, where there is one."""
    return f" next     {next_command(command)}"


def error_json(status: JobStatus) -> dict[str, Any]:
    """The error that a job met last, and whether it stands still for it, for programs."""
    return {"last_error": status.last_error, "retrying": retrying(status)}


def sharing_json(status: JobStatus) -> dict[str, Any]:
    """What a job may take of the cluster and of the workers, for programs."""
    return {
        "priority": status.priority,
        "limits": status.pace.to_json() if str(status.pace) else None,
        "paused_s": status.elapsed_s - status.worked_s,
    }


def exit_code(status: JobStatus, *, interrupted: bool) -> int:
    """What the command that followed the job ends with."""
    if interrupted and status.state is JobState.CANCELLED:
        return EXIT_INTERRUPTED
    return EXIT_CODES[status.state]
