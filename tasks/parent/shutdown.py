"""A worker that is told to stop waits for the units in progress, and no longer.

Celery's soft shutdown sleeps its whole time whenever its books have a task; asleep in the handler
of the signal it takes no results, so the books never clear. Here a process holds a lock while it
works on a unit, and the worker waits until nobody holds one. The lock of a process that is killed
ends with it.

Nor does it wait for a broker that is away once there is nothing left but to take leave; that is
counted from the signal on, since the signal finds the main thread wherever it is.
"""

from __future__ import annotations

import fcntl
import logging
import math
import os
import signal
import tempfile
import threading
import time
from contextlib import suppress
from typing import IO, Any

from celery.apps.worker import Worker
from celery.signals import worker_shutting_down

from ringhaul.errors import EXIT_COMPLETE

log = logging.getLogger(__name__)

_LOOK_S = 0.05
_NOTE_S = 1.0
#: How long each part of an end may take once no unit is in progress: ending the processes; and
#: signing off with the broker and with the ledger, each of which waits some seconds for a Redis
#: that does not answer.
FAREWELL_S = 10.0


class UnitsInProgress:
    """Which of a worker's processes work on a unit. Opened in the parent before it forks.

    Record locks belong to a process and not to the file that its children inherit: each child has
    its own, shared with those of the others, and in the way of the parent's exclusive one.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None

    def open(self) -> None:
        """Make what the locks are on. Without it nothing is ever in progress."""
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - for the life of the worker

    def begin(self) -> None:
        """This process works on a unit from now on."""
        if self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_SH)

    def end(self) -> None:
        """This process works on no unit."""
        if self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def any(self) -> bool:
        """Whether a process other than this one works on a unit."""
        if self._file is None:
            return False
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.lockf(self._file, fcntl.LOCK_UN)
        return False


#: Of this worker.
UNITS = UnitsInProgress()


class UnitWorker(Worker):  # type: ignore[misc]
    """Celery's worker, but for how it waits at its end."""

    _ending: Ending | None = None

    def on_start(self) -> None:
        super().on_start()
        worker_shutting_down.connect(self._on_signal, weak=False)

    def wait_for_soft_shutdown(self) -> None:
        """Called in the handler of the signal; what is in progress afterwards is given back."""
        limit_s = self.app.conf.worker_soft_shutdown_timeout
        self._watch(limit_s)
        until = time.monotonic() + limit_s
        if UNITS.any():
            log.warning("stopping: units in progress have %s s to end", limit_s)
        while UNITS.any() and time.monotonic() < until:
            time.sleep(_LOOK_S)

    def _on_signal(self, how: str = "", **_: Any) -> None:
        self._watch(math.inf if how == "Warm" else 0.0)

    def _shutdown(self, warm: bool = True) -> None:
        """Stop, or leave what cannot be stopped."""
        if self.pool is None:  # it never came so far
            super()._shutdown(warm)
            return
        self._watch(math.inf if warm else 0.0, always=True)
        try:
            super()._shutdown(warm)
        finally:
            if self._ending is not None:
                self._ending.over()

    def _watch(self, units_s: float, *, always: bool = False) -> None:
        """See to it that this process ends, from the signal on: the main thread may be anywhere.

        A pool without processes works in this one (`solo`): there the end begins only after the
        unit (`always`), whenever that is.
        """
        if self._ending is not None:
            self._ending.hurry(units_s)
        elif always or (self.pool is not None and self.pool._pool is not None):
            self._ending = Ending(self.pool, units_s)
            self._ending.start()


class Ending(threading.Thread):
    """Ends this process and those of its pool when its own end comes to a standstill.

    The main thread may be held up for ever, by a connection that it cannot make or by a lock that
    another thread has meanwhile. Celery's own end has no bound on that.
    """

    def __init__(self, pool: Any, units_s: float) -> None:
        """`units_s`: how long units in progress are waited for, from now."""
        super().__init__(name="ending", daemon=True)
        self._pool = pool
        self._units_until = time.monotonic() + units_s
        self._over = threading.Event()

    def hurry(self, units_s: float) -> None:
        """Wait no longer than this for units, if that is sooner than before."""
        self._units_until = min(self._units_until, time.monotonic() + units_s)

    def over(self) -> None:
        """The process has come to its end by itself."""
        self._over.set()

    def run(self) -> None:
        """Look until the end is there, or has not come any nearer for `FAREWELL_S`."""
        since, had_pool = time.monotonic(), True
        while not self._over.wait(_LOOK_S):
            now, has_pool = time.monotonic(), self._pool._pool is not None
            works = has_pool and now < self._units_until and UNITS.any()
            if works or has_pool != had_pool:
                since, had_pool = now, has_pool
            elif now - since >= FAREWELL_S:
                self._leave()

    def _leave(self) -> None:
        # The main thread may stand in the handler of a signal that came while it held a log's lock.
        words = "stopped without a word to the broker, which does not answer"
        note = threading.Thread(target=log.warning, args=(words,), daemon=True)
        note.start()
        note.join(_NOTE_S)
        pool = self._pool._pool
        for process in [] if pool is None else pool._pool:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)  # whatever it holds runs out with its lease
        os._exit(EXIT_COMPLETE)
