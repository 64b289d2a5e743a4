"""What a call of the client raises: one class for each way in which a command can fail.

The classes and `transient`, which says whether the same call may succeed later, follow from the
cause that the command reports: see `ringhaul.causes`. The errors of a job that has a result are in
`job_result`.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

from ringhaul import causes
from ringhaul.client.progress import Progress

#: Exit codes of the command. The table in its documentation explains them.
COMPLETE, REJECTS, USAGE, TOO_MANY_REJECTS = 0, 1, 2, 3
FATAL, CRASH, CANCELLED, STILL_RUNNING, INTERRUPTED = 4, 5, 6, 7, 130


class ClientError(Exception):
    """Base of all errors of the client. Its text is the command's message."""

    #: Whether trying again later may help.
    transient = False

    def __init__(self, message: str, *, exit_code: int = USAGE, notes: Sequence[str] = ()) -> None:
        """Take the command's message and exit code; `notes`: its last lines on standard error."""
        super().__init__(message)
        self.message, self.exit_code, self.notes = message, exit_code, tuple(notes)

    def rename(self, path: str, noun: str) -> None:
        """Write `noun` for the path of a file that the caller never saw."""
        self.message = self.message.replace(path, noun)
        self.args = (self.message,)
        self.notes = tuple(note.replace(path, noun) for note in self.notes)


class UsageError(ClientError):
    """An argument, an option, a setting or the input cannot be used. No row was written."""


class CommandMissing(ClientError):
    """The command cannot be started: there is no such program."""


class CommandFailed(ClientError):
    """The command cannot continue, for a reason that no other class describes."""


class CommandUnavailable(CommandFailed):
    """Another service, or a worker process of the command, was away."""

    transient = True


class CommandKilled(CommandFailed):
    """A signal ended the command: of a user, of a scheduler, or for want of memory."""

    transient = True


class ClusterError(CommandFailed):
    """The cluster cannot be used: address, password, data centre, keyspace or table are wrong."""


class ClusterUnavailable(CommandFailed):
    """No node answers, or too few for the consistency level."""

    transient = True


class BrokerUnavailable(CommandFailed):
    """Redis does not answer."""

    transient = True


class SourceError(CommandFailed):
    """A source file changed, or is damaged."""


class SourceUnavailable(CommandFailed):
    """A source cannot be read now: its store or its server does not answer."""

    transient = True


class OutputError(CommandFailed):
    """The output cannot be written."""


class OutputUnavailable(CommandFailed):
    """The output cannot be written now."""

    transient = True


class CommandCrashed(ClientError):
    """A defect in ringhaul. `notes` has the traceback."""


class TimedOut(ClientError):
    """The call took longer than its `timeout`. `job` is its job, if there was one already,
    `seconds` the timeout, and `progress` the last that was heard of the job."""

    transient = True

    def __init__(
        self,
        message: str,
        *,
        job: str | None,
        exit_code: int,
        seconds: float | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(message, exit_code=exit_code)
        self.job, self.seconds, self.progress = job, seconds, progress


_BY_CODE: dict[int, type[ClientError]] = {
    USAGE: UsageError,
    FATAL: CommandFailed,
    CRASH: CommandCrashed,
}
#: Signals that a process gets for a defect of its own.
_DEFECTS = (
    *(signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGTRAP),
)
_SIGNALLED, _SIGNALS_END = 128, 192


def command_error(
    names: Sequence[str], message: str, exit_code: int, *, notes: Sequence[str] = ()
) -> ClientError:
    """Return the error of a command without a result. `names`: the class of the error that it
    reported, such as `ClusterUnavailable`, and its bases; empty: none."""
    if exit_code < 0:  # a signal ended the leash
        exit_code = _SIGNALLED - exit_code
    cause = causes.CAUSES.get(causes.named_cause(names))
    if cause is not None and cause.exit_code == exit_code:
        kind = _BY_NAME[cause.error]
    elif _SIGNALLED < exit_code < _SIGNALS_END:
        number = exit_code - _SIGNALLED
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        kind = CommandCrashed if number in _DEFECTS else CommandKilled
        message = f"the signal {name} ended the command; its last words: {message}"
    else:
        kind = _BY_CODE.get(exit_code, CommandFailed)
    return kind(message, exit_code=exit_code, notes=notes)


#: Name -> class, for what `causes` says.
_BY_NAME: dict[str, type[ClientError]] = {
    kind.__name__: kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, ClientError)
}
