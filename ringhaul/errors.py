"""Errors by what can be done about them.

Two mix-ins decide retries by type, so that no caller matches on messages:

- `Terminal`: trying again gives the same answer (bad option, missing table, changed file).
- `Transient`: trying again later may help (time-outs, overload, a node or Redis that is away).

Every error a user can meet carries the exit code that the command ends with (table in
docs/cli.md) and a message that says what is wrong, where, and what to do about it.
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

#: `errno` of a full disk or a used up quota.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class RinghaulError(Exception):
    """Base of all errors that are told to a user in words instead of a traceback."""

    exit_code = EXIT_CRASH


class Terminal(RinghaulError):
    """Trying again gives the same answer."""


class Transient(RinghaulError):
    """Trying again later may help."""


class UnitPaused(Exception):
    """A unit is to be left as it is, to be gone on with later. No error, and nobody is told."""


class TooManyRejects(Exception):
    """A unit alone has more rejects than its job allows, and is not done. No error of its own."""

    def __init__(self, rows: int, rejected: int, input_bytes: int, rejects_blob: bytes) -> None:
        """What it did until then; `rejects_blob`: its rejects, as a unit of its job leaves them."""
        super().__init__(f"{rejected} records were rejected")
        self.rows, self.rejected, self.input_bytes = rows, rejected, input_bytes
        self.rejects_blob = rejects_blob


class UsageError(Terminal):
    """The command, its options, its settings or its input cannot be used as given."""

    exit_code = EXIT_USAGE


class SetupUnusable(UsageError):
    """A setting, a host or the cluster is not as the command needs it, whatever its input holds."""


class SourceMissing(UsageError):
    """A source names no readable file."""


class SourceUnavailable(Transient):
    """A source cannot be read now: its store or server does not answer."""

    exit_code = EXIT_FATAL


class SourceChanged(Terminal):
    """A source file is not the file that was split: its size differs."""

    exit_code = EXIT_FATAL


class SourceCorrupt(Terminal):
    """A compressed or encoded source cannot be decoded."""

    exit_code = EXIT_FATAL


class OutputUnusable(Terminal):
    """The output cannot be written: the disk is full, or the folder is closed to us or gone."""

    exit_code = EXIT_FATAL


class OutputUnavailable(Transient):
    """The output cannot be written now: its store or its disk did not do as asked."""

    exit_code = EXIT_FATAL


class ClusterError(Terminal):
    """The cluster cannot be used: address, credentials, data centre or schema are wrong."""

    exit_code = EXIT_FATAL


class ClusterUnavailable(Transient):
    """The cluster did not answer, or not with the consistency asked for."""

    exit_code = EXIT_FATAL


class LedgerUnavailable(Transient):
    """The ledger's Redis did not answer within the time allowed."""

    exit_code = EXIT_FATAL
