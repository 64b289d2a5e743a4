"""Shutdown of a worker: it waits for the units in progress, and no longer.

Celery's soft shutdown sleeps until its timeout if it knows of any running task: it sleeps in
the signal handler, where it receives no results, so the tasks never appear finished. Here a process
holds a lock while it works on a unit, and the worker waits until no process holds one. The lock of
a killed process ends with it.

Nor does it wait for an unavailable broker when all that is left is to sign off. That time limit
starts with the signal, which may catch the main thread anywhere.
"""

from __future__ import annotations

import fcntl
import logging
import math
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from celery.apps.worker import Worker
from celery.exceptions import WorkerTerminate
from celery.signals import worker_shutting_down

from ringhaul.errors import EXIT_COMPLETE, EXIT_FATAL, EXIT_USAGE, UsageError
from ringhaul.run_folder import remove_own
from tasks.exit_codes import exit_code
from tasks.pools import check_pool, pool_name

log = logging.getLogger(__name__)

_LOOK_S = 0.05
_NOTE_S = 1.0
#: How long each part of the shutdown may take once no unit is in progress: ending the processes,
#: and signing off at the broker and the ledger, each of which waits some seconds for a Redis that
#: does not answer.
FAREWELL_S = 10.0


class UnitsInProgress:
    """Tracks whether a worker's processes work on a unit. Opened in the parent before it forks.

    Record locks belong to a process, not to the inherited file: each child has its own shared lock,
    which conflicts only with the parent's exclusive one.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None

    def open(self) -> None:
        """Create the file to lock. Without it, no unit ever counts as in progress."""
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - for the life of the worker

    def begin(self) -> None:
        """Mark this process as working on a unit."""
        if self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_SH)

    def end(self) -> None:
        """Mark this process as not working on a unit."""
        if self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def any(self) -> bool:
        """Return whether a process other than this one works on a unit."""
        if self._file is None:
            return False
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.lockf(self._file, fcntl.LOCK_UN)
        return False


#: The units of this worker.
UNITS = UnitsInProgress()


class UnitWorker(Worker):  # type: ignore[misc]
    """Celery's worker with our shutdown."""

    _ending: Ending | None = None
    _signalled = False  #: a signal has asked it to stop

    def on_before_init(self, **kwargs: Any) -> None:
        """Refuse pools in which units cannot run, however the worker is started."""
        try:
            check_pool(pool_name(kwargs.get("pool_cls") or kwargs.get("pool")))
        except UsageError as error:
            print(f"ringhaul: {error}", file=sys.stderr)
            raise SystemExit(EXIT_USAGE) from error
        super().on_before_init(**kwargs)

    def on_start(self) -> None:
        super().on_start()
        worker_shutting_down.connect(self._on_signal, weak=False)

    def terminate(self, in_sighandler: bool = False) -> None:
        """Stop at once. If that is because the consumer cannot go on (it has no file left to open,
        for example), that is a failure, which Celery forgets."""
        error = sys.exception()
        if (
            isinstance(error, WorkerTerminate)
            and error.__cause__ is not None
            and not self._signalled
        ):
            self.exitcode = EXIT_FATAL
        super().terminate(in_sighandler)

    def stop(self, in_sighandler: bool = False, exitcode: int | None = None) -> None:
        """Stop. What goes wrong after someone asked for it, such as a broker that is away by now,
        is no failure."""
        super().stop(in_sighandler, EXIT_COMPLETE if self._signalled else exitcode)

    def wait_for_soft_shutdown(self) -> None:
        """Wait for units in progress. Celery calls this in the signal handler, and gives back what
        is still in progress afterwards."""
        limit_s = self.app.conf.worker_soft_shutdown_timeout
        self._watch(limit_s)
        until = time.monotonic() + limit_s
        if UNITS.any():
            log.warning("stopping: units in progress have %s s to finish", limit_s)
        while UNITS.any() and time.monotonic() < until:
            time.sleep(_LOOK_S)

    def _on_signal(self, how: str = "", **_: Any) -> None:
        self._signalled = True
        self._watch(math.inf if how == "Warm" else 0.0)

    def _shutdown(self, warm: bool = True) -> None:
        """Stop; exit the process if stopping does not succeed in time."""
        if self.pool is None:  # startup did not get that far
            super()._shutdown(warm)
            return
        self._watch(math.inf if warm else 0.0, always=True)
        try:
            super()._shutdown(warm)
        finally:
            if self._ending is not None:
                self._ending.over()

    def _watch(self, units_s: float, *, always: bool = False) -> None:
        """Make sure that this process exits, wherever the signal caught its main thread.

        A pool without processes (`solo`) runs units in this one: there the watch starts only after
        the unit (`always`).
        """
        if self._ending is not None:
            self._ending.hurry(units_s)
        elif always or (self.pool is not None and self.pool._pool is not None):
            self._ending = Ending(self.pool, units_s, lambda: exit_code(self.exitcode))
            self._ending.start()


class Ending(threading.Thread):
    """Watchdog thread: kills this process and its pool if the shutdown makes no progress.

    The main thread may block for ever, on a connection that it cannot open or on a lock that
    another thread holds. Celery's own shutdown has no time limit.
    """

    def __init__(
        self, pool: Any, units_s: float, code: Callable[[], int] = lambda: EXIT_COMPLETE
    ) -> None:
        """`units_s`: how long to wait for units in progress, from now; `code`: the exit code."""
        super().__init__(name="ending", daemon=True)
        self._code = code
        self._pool = pool
        self._units_until = time.monotonic() + units_s
        self._over = threading.Event()

    def hurry(self, units_s: float) -> None:
        """Shorten the wait for units to `units_s` from now; never lengthens it."""
        self._units_until = min(self._units_until, time.monotonic() + units_s)

    def over(self) -> None:
        """Stop the watchdog: the shutdown has completed."""
        self._over.set()

    def run(self) -> None:
        """Watch until the shutdown completes, or makes no progress for `FAREWELL_S`."""
        since, had_pool = time.monotonic(), True
        while not self._over.wait(_LOOK_S):
            now, has_pool = time.monotonic(), self._pool._pool is not None
            works = has_pool and now < self._units_until and UNITS.any()
            if works or has_pool != had_pool:
                since, had_pool = now, has_pool
            elif now - since >= FAREWELL_S:
                self._leave()

    def _leave(self) -> None:
        # Log in a thread: the signal may have interrupted the main thread while it held a log lock.
        message = "stopped without signing off at the broker, which does not answer"
        note = threading.Thread(target=log.warning, args=(message,), daemon=True)
        note.start()
        note.join(_NOTE_S)
        pool = self._pool._pool
        for process in [] if pool is None else pool._pool:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)  # its lease runs out
        remove_own()
        os._exit(self._code())
