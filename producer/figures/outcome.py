"""Outcome of a job of any kind: exit code, closing table, summary for programs."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from producer.figures.snapshot import retrying
from producer.figures.speed import recent_snapshot
from producer.request.next_command import next_command
from producer.text import count_text
from ringhaul.causes import QUARANTINED, TOO_MANY_REJECTS, is_transient
from ringhaul.errors import (
    EXIT_CANCELLED,
    EXIT_COMPLETE,
    EXIT_FATAL,
    EXIT_INTERRUPTED,
    EXIT_REJECTS,
    EXIT_STILL_RUNNING,
    EXIT_TOO_MANY_ERRORS,
    SourceChanged,
    SourceCorrupt,
)
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.job_status import DAMAGED, JobStatus
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import JobState
from ringhaul.plain_text import lines_of

EXIT_CODES: Mapping[JobState, int] = {
    JobState.RUNNING: EXIT_STILL_RUNNING,
    JobState.COMPLETE: EXIT_COMPLETE,
    JobState.PARTIAL: EXIT_REJECTS,
    # Part of the work was not done: never a success.
    JobState.QUARANTINED: EXIT_FATAL,
    JobState.STOPPED: EXIT_TOO_MANY_ERRORS,
    JobState.CANCELLED: EXIT_CANCELLED,
    JobState.FAILED: EXIT_FATAL,
}


#: Causes that a state says by itself.
_CAUSES: Mapping[JobState, str] = {
    JobState.STOPPED: TOO_MANY_REJECTS,
    JobState.QUARANTINED: QUARANTINED,
}
#: Causes that a resume meets again.
_FILES_DIFFER = (SourceChanged.__name__, SourceCorrupt.__name__)

#: Errors of reading results, specs and rejects that something else was written over.
UNREADABLE = (ValueError, KeyError, IndexError, TypeError, zlib.error)


@dataclass(frozen=True, kw_only=True)
class Closing:
    """The closing report of a command that followed a job, or shows it later."""

    exit_code: int
    figures: Sequence[str]  #: lines of counts and times
    verdict: Sequence[str]  #: lines: how it ended, and the next command if there is one
    data: dict[str, Any]  #: JSON object for programs, on stdout

    @property
    def text(self) -> str:
        """The report for people, on stderr."""
        return lines_of([*self.figures, *self.verdict])

    @property
    def alarm(self) -> str:
        """What a quiet command says to people if the job did not succeed."""
        return lines_of([f"{self.data['job']} {self.verdict[0]}", *self.verdict[1:]])


def check_sums(ledger: Ledger, status: JobStatus, sums: Mapping[str, int]) -> None:
    """Raise `JobDamaged` if the results of the units do not add up to the job's totals.

    `sums`: sums over the results, which were read after `status`. Nothing is compared if a unit was
    committed in between: only the sums include it.
    """
    if ledger.status(status.job).done != status.done:
        return
    damage = [
        f"its results make {value:,} {name} and its totals {status.totals.get(name, 0):,}"
        for name, value in sums.items()
        if status.totals.get(name, 0) != value
    ]
    if damage:
        raise JobDamaged(status.job, damage)


def check_rejects(status: JobStatus, kept: int, rejected: int) -> None:
    """Raise `JobDamaged` if fewer rejects are kept than were counted."""
    if kept < rejected:
        raise JobDamaged(status.job, [f"{kept:,} of {count_text(rejected, 'reject')} are there"])


def damaged_closing(error: JobDamaged) -> Closing:
    return Closing(
        exit_code=EXIT_FATAL,
        figures=[],
        verdict=[f" {error}"],
        data={
            "message_type": "summary",
            "job": error.job,
            "state": DAMAGED,
            "exit_code": EXIT_FATAL,
            "damage": list(error.damage),
        },
    )


def unfinished(status: JobStatus, part: str) -> list[str]:
    """Return the verdict on a job that is still running or paused; `part` says what is done."""
    limits = [f" limits   {status.pace}"] if str(status.pace) else []
    share = f"{recent_snapshot(status, ()).share:.0%}"
    if status.paused:
        return [f" paused: {share}, {part}", *limits, next_line(f"resume {status.job}")]
    reason = retrying(status)
    return [
        f" still running: {share}, {part}",
        *([f" retrying {reason}"] if reason else []),
        *limits,
        next_line(f"status -f {status.job}"),
    ]


def next_line(command: str) -> str:
    """Return the line that suggests the next command, such as `resume JOB`."""
    return f" next     {next_command(command)}"


def resume_lines(status: JobStatus) -> list[str]:
    """Return the line that suggests a resume; nothing if that would fail as before: the files of a
    job have to be what it was planned with."""
    return [] if status.cause in _FILES_DIFFER else [next_line(f"resume {status.job}")]


def error_json(status: JobStatus) -> dict[str, Any]:
    """Return a job's last error, whether it is stuck because of it, and why it ended early, for
    programs."""
    cause = cause_of_end(status)
    return {
        "last_error": status.last_error,
        "retrying": retrying(status),
        "cause": cause or None,
        "transient": is_transient(cause),
    }


def cause_of_end(status: JobStatus) -> str:
    """Return why a job ended early; empty: it did not, or that is not known."""
    return _CAUSES.get(status.state, "") or status.cause


def sharing_json(status: JobStatus) -> dict[str, Any]:
    """Return a job's priority, limits and time paused, for programs."""
    return {
        "priority": status.priority,
        "limits": status.pace.to_json() if str(status.pace) else None,
        "paused_s": status.elapsed_s - status.worked_s,
    }


def exit_code(status: JobStatus, *, interrupted: bool) -> int:
    """Return the exit code of the command that followed the job."""
    if interrupted and status.state is JobState.CANCELLED:
        return EXIT_INTERRUPTED
    return EXIT_CODES[status.state]
