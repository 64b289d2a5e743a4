"""Why a command or a job ended early, and what follows from that: one table.

A job's state says how far it came, not whether trying again may help: a job that a lost cluster
ended is FAILED like one whose file is damaged. So the cause is kept with the job and reported with
the error. Exit codes of commands, the classes of errors of `ringhaul.client`, and whether a
scheduler should try again follow from it. Pure; imports nothing, since the client is light.

A cause is the name of an error's class, or of one of its bases, or says how a process ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

#: The command that followed the job was interrupted, or killed, and took its job with it.
INTERRUPTED = "Interrupted"
#: A user cancelled the job.
CANCELLED = "Cancelled"
TOO_MANY_REJECTS = "TooManyRejects"
QUARANTINED = "Quarantined"
#: The command left its job to the workers.
DETACHED = "Detached"
#: A signal ended the command, before or after its job began.
KILLED = "Killed"
#: The call took longer than its `timeout`.
TIMED_OUT = "TimedOut"


class Cause(NamedTuple):
    """What follows from a cause."""

    exit_code: int  #: exit code of a command that it ends, with a job or before the job exists
    error: str  #: class that `ringhaul.client` raises if there is no job
    transient: bool  #: the same call may succeed later
    meaning: str


#: Cause -> what follows. An error is looked up by its class, then by its bases.
CAUSES: Mapping[str, Cause] = {
    "UsageError": Cause(2, "UsageError", False, "An option, a setting or the input is wrong."),
    "ClusterUnavailable": Cause(
        4, "ClusterUnavailable", True, "No node answers in time, or too few for the consistency."
    ),
    "ClusterError": Cause(
        4, "ClusterError", False, "The address, the password, the keyspace or the table is wrong."
    ),
    "LedgerUnavailable": Cause(4, "BrokerUnavailable", True, "Redis does not answer in time."),
    "SourceUnavailable": Cause(
        4, "SourceUnavailable", True, "The store or the server of a source does not answer in time."
    ),
    "SourceChanged": Cause(4, "SourceError", False, "A source file changed."),
    "SourceCorrupt": Cause(4, "SourceError", False, "A source file is damaged."),
    "OutputUnavailable": Cause(
        4, "OutputUnavailable", True, "The store of the output does not answer in time."
    ),
    "OutputUnusable": Cause(
        4, "OutputError", False, "The output cannot be written, for example on a full disk."
    ),
    "Transient": Cause(
        4, "CommandUnavailable", True, "Another service or a worker process was away."
    ),
    "Terminal": Cause(4, "CommandFailed", False, "Another reason that stays."),
    "RinghaulError": Cause(5, "CommandCrashed", False, "A defect in ringhaul."),
    TOO_MANY_REJECTS: Cause(
        3, "TooManyRejects", False, "More records were rejected than `--max-errors` allows."
    ),
    QUARANTINED: Cause(4, "JobFailed", False, "Units kept killing their worker processes."),
    CANCELLED: Cause(6, "JobCancelled", False, "A user cancelled the job."),
    INTERRUPTED: Cause(
        6, "JobCancelled", True, "The job's command was interrupted or killed, and its job with it."
    ),
    DETACHED: Cause(7, "JobStillRunning", True, "The command left the job to the workers."),
    KILLED: Cause(130, "CommandKilled", True, "A signal ended the command."),
    TIMED_OUT: Cause(130, "TimedOut", True, "The call took longer than its `timeout`."),
}


def named_cause(names: Iterable[str]) -> str:
    """Return the cause for an error's class and its bases, the most general last; empty: none."""
    return next((name for name in names if name in CAUSES), "")


def cause_of(error: BaseException) -> str:
    """Return the cause for an error; empty: the error is not ours, and nothing is known of it."""
    names = [base.__name__ for base in type(error).__mro__]
    if isinstance(error, TimeoutError | ConnectionError):  # Python's own classes
        names.append("Transient")
    return named_cause(names)


def is_transient(cause: str) -> bool:
    """Return whether the same call may succeed later."""
    return cause in CAUSES and CAUSES[cause].transient
