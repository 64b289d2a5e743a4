"""Error classes, grouped by what can be done about them.

Two base classes decide retries by type, so that no caller matches on messages:

- `Terminal`: trying again gives the same result (bad option, missing table, changed file).
- `Transient`: trying again later may help (time-outs, overload, an unreachable node or Redis).

Every error a user can meet carries the command's exit code (docs/reference/exit-codes.md) and a
message that says what is wrong, where, and what to do about it.
"""

import errno

EXIT_COMPLETE = 0
EXIT_REJECTS = 1
EXIT_USAGE = 2
EXIT_TOO_MANY_ERRORS = 3
EXIT_FATAL = 4
EXIT_CRASH = 5
EXIT_CANCELLED = 6
EXIT_STILL_RUNNING = 7
EXIT_INTERRUPTED = 130

#: `errno` values of a full disk or an exhausted quota.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class RinghaulError(Exception):
    """Base of all errors that are shown to a user as a message instead of a traceback."""

    exit_code = EXIT_CRASH


class Terminal(RinghaulError):
    """An error for which trying again gives the same result."""


class Transient(RinghaulError):
    """An error for which trying again later may help."""


class UnitPaused(Exception):
    """Signal that a unit stops here and is continued later. Not an error, and not reported."""


class TooManyRejects(Exception):
    """Signal that one unit exceeds its job's reject limit and stops unfinished. Not an error."""

    def __init__(self, rows: int, rejected: int, input_bytes: int, rejects_blob: bytes) -> None:
        """Take what the unit did so far; `rejects_blob`: its rejects, encoded as usual."""
        super().__init__(f"{rejected} records were rejected")
        self.rows, self.rejected, self.input_bytes = rows, rejected, input_bytes
        self.rejects_blob = rejects_blob


class UsageError(Terminal):
    """The command, its options, its settings or its input cannot be used as given."""

    exit_code = EXIT_USAGE


class SetupUnusable(UsageError):
    """A setting, a host or the cluster does not fit the command, whatever its input."""


class SourceMissing(UsageError):
    """A source does not name a readable file."""


class SourceUnavailable(Transient):
    """A source cannot be read now: its store or server does not answer."""

    exit_code = EXIT_FATAL


class SourceChanged(Terminal):
    """A source file has changed since the job was planned, or was replaced."""

    exit_code = EXIT_FATAL


class SourceCorrupt(Terminal):
    """A compressed or encoded source cannot be decoded."""

    exit_code = EXIT_FATAL


class OutputUnusable(Terminal):
    """The output cannot be written: the disk is full, or the folder is not writable or gone."""

    exit_code = EXIT_FATAL


class OutputUnavailable(Transient):
    """The output cannot be written now: its store or its disk reported an error."""

    exit_code = EXIT_FATAL


class ClusterError(Terminal):
    """The cluster cannot be used: address, credentials, data centre or schema are wrong."""

    exit_code = EXIT_FATAL


class ClusterUnavailable(Transient):
    """The cluster did not answer, or could not meet the consistency level."""

    exit_code = EXIT_FATAL


class WorkersUnavailable(Transient):
    """The command's own processes do not start in time, or die again and again."""

    exit_code = EXIT_FATAL


class LedgerUnavailable(Transient):
    """The ledger's Redis did not answer within the time allowed."""

    exit_code = EXIT_FATAL
