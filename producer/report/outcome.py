"""How a job ended, whatever its kind: exit code, closing table, summary for programs."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from producer.report.next_command import next_command
from producer.report.snapshot import retrying
from producer.text import count_text
from ringhaul.errors import (
    EXIT_CANCELLED,
    EXIT_COMPLETE,
    EXIT_FATAL,
    EXIT_INTERRUPTED,
    EXIT_REJECTS,
    EXIT_STILL_RUNNING,
    EXIT_TOO_MANY_ERRORS,
)
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import DAMAGED, JobStatus
from ringhaul.ledger.states import JobState
from ringhaul.plain_text import lines_of

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


#: How reading results, specs and rejects fails that something else was written over.
UNREADABLE = (ValueError, KeyError, IndexError, TypeError, zlib.error)
REASON_CHARS_MAX = 200


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
        return lines_of([*self.figures, *self.verdict])

    @property
    def alarm(self) -> str:
        """What people are told of a job that was to be quiet and did not end well."""
        return lines_of([f"{self.data['job']} {self.verdict[0]}", *self.verdict[1:]])


def check_sums(ledger: Ledger, status: JobStatus, sums: Mapping[str, int]) -> None:
    """Raise `JobDamaged` if the results of the units do not add up to the job's totals.

    `sums`: over the results that were read after `status`; a unit that was committed meanwhile is
    in one of the two only, and nothing is compared.
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
