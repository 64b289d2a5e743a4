"""How a job ended: its result, and the error of a job that did not end well.

Both are in one module, since a result raises the error that carries it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from ringhaul import causes
from ringhaul.client.errors import (
    CANCELLED,
    COMPLETE,
    INTERRUPTED,
    REJECTS,
    STILL_RUNNING,
    TOO_MANY_REJECTS,
    ClientError,
)

#: A JSON object of the command.
Figures = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """How a job ended, or its current state."""

    job: str  #: its id
    kind: str  #: load, verify, unload, count, query, lookup or exec
    state: str  #: COMPLETE, PARTIAL, STOPPED, CANCELLED, FAILED, QUARANTINED; RUNNING or PAUSED
    exit_code: int  #: its command's exit code; 7 while the job runs
    table: str  #: KEYSPACE.TABLE; empty for lookup and exec
    rows: int  #: written, read, or the same in the table: what the kind of job is about
    rejected: int
    seconds: float  #: time since the first unit, without the time between an end and a resume
    units: int
    units_done: int
    retries: int
    last_error: str | None
    figures: Figures = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether all is done, with no reject and no difference."""
        return self.exit_code == COMPLETE

    def check(self) -> Self:
        """Return the result itself. Raises `RejectedRecords` or another `JobError` unless it is
        `ok`."""
        if not self.ok:
            raise job_error(self, message=self.problem())
        return self

    def problem(self) -> str:
        """Return in a few words what is not ok; empty: see `state` and `last_error`."""
        if not self.rejected:
            return ""
        return (
            f"{self.rejected:,} {'record was' if self.rejected == 1 else 'records were'} rejected"
        )


class JobError(ClientError):
    """A job that did not end well. `result` has its figures."""

    #: Why it ended early: a name in `ringhaul.causes`; empty: not known.
    cause = ""

    def __init__(self, message: str, result: JobResult, *, notes: Sequence[str] = ()) -> None:
        super().__init__(message, exit_code=result.exit_code, notes=notes)
        self.result = result


class RejectedRecords(JobError):
    """The job is complete except for records that were rejected, or differ from the table."""


class TooManyRejects(JobError):
    """The job stopped: more records were rejected than `max_errors` allows."""


class JobFailed(JobError):
    """The job is FAILED or QUARANTINED: an error that retries did not cure."""


class JobCancelled(JobError):
    """The job was cancelled: by a user, or (`transient`) because its command was interrupted."""


class JobStillRunning(JobError):
    """The command was detached from its job, which continues."""

    transient = True


_OF_JOB: dict[int, type[JobError]] = {
    REJECTS: RejectedRecords,
    TOO_MANY_REJECTS: TooManyRejects,
    CANCELLED: JobCancelled,
    STILL_RUNNING: JobStillRunning,
    INTERRUPTED: JobCancelled,
}
#: Causes that follow from the exit code of a command with a job.
_CAUSES = {STILL_RUNNING: causes.DETACHED, INTERRUPTED: causes.INTERRUPTED}


def job_error(result: JobResult, *, message: str = "", notes: Sequence[str] = ()) -> JobError:
    """Return the error of a job that ended with another exit code than 0. `message`: what the
    command said; empty: the job's last error, or its state.

    Its class says how the job ended; `transient` follows from the cause.
    """
    kind = _OF_JOB.get(result.exit_code, JobFailed)
    text = message or result.last_error or f"it is {result.state}"
    error = kind(f"job {result.job}: {text}", result, notes=notes)
    error.cause = _CAUSES.get(result.exit_code) or str(result.figures.get("cause") or "")
    error.transient = causes.is_transient(error.cause)
    return error
