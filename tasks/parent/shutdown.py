"""A worker that is told to stop waits for the units in progress, and no longer.

Celery's soft shutdown sleeps its whole time whenever its books have a task; asleep in the handler
of the signal it takes no results, so the books never clear. Here a process holds a lock while it
works on a unit, and the worker waits until nobody holds one. The lock of a process that is killed
ends with it.

Nor does it wait for a broker that is away once there is nothing left but to take leave.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import tempfile
import threading
import time
from contextlib import suppress
from typing import IO, Any

from celery.apps.worker import Worker

from ringhaul.errors import EXIT_COMPLETE

log = logging.getLogger(__name__)

_LOOK_S = 0.05
#: How long the last of an end may take: killing the processes, and signing off with the broker and
#: with the ledger, each of which waits some seconds for a Redis that does not answer.
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

    def _shutdown(self, warm: bool = True) -> None:
        """Stop, or leave what cannot be stopped.

        Celery's timer goes on in a thread while the pool ends. With a broker that went away its
        heartbeat connects again and again there, with the lock in hand that the main thread needs
        to send the last event: the process would stay for ever.
        """
        if self.pool is None:  # it never came so far
            super()._shutdown(warm)
            return
        over = threading.Event()
        stuck = threading.Thread(
            target=_leave_when_stuck, args=(self.pool, over), kwargs={"warm": warm}, daemon=True
        )
        stuck.start()
        try:
            super()._shutdown(warm)
        finally:
            over.set()

    def wait_for_soft_shutdown(self) -> None:
        """Called in the handler of the signal; what is in progress afterwards is given back."""
        limit_s = self.app.conf.worker_soft_shutdown_timeout
        until = time.monotonic() + limit_s
        if UNITS.any():
            log.warning("stopping: units in progress have %s s to end", limit_s)
        while UNITS.any() and time.monotonic() < until:
            time.sleep(_LOOK_S)


def _leave_when_stuck(pool: Any, over: threading.Event, *, warm: bool) -> None:
    """End this process and those of its `pool` if the last of their end takes too long.

    `warm`: the pool may first finish what it is at, however long that takes.
    """
    while warm and pool._pool is not None:
        if over.wait(_LOOK_S):
            return
    if over.wait(FAREWELL_S):
        return
    log.warning("stopped without a word to the broker, which does not answer")
    for process in [] if pool._pool is None else pool._pool._pool:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)  # whatever it holds runs out with its lease
    os._exit(EXIT_COMPLETE)
