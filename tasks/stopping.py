"""A worker that is told to stop waits for the units in progress, and no longer.

Celery's soft shutdown sleeps its whole time whenever its books have a task; asleep in the handler
of the signal it takes no results, so the books never clear. Here a process holds a lock while it
works on a unit, and the worker waits until nobody holds one. The lock of a process that is killed
ends with it.
"""

from __future__ import annotations

import fcntl
import logging
import tempfile
import time
from typing import IO

from celery.apps.worker import Worker

log = logging.getLogger(__name__)

_LOOK_S = 0.05


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

    def wait_for_soft_shutdown(self) -> None:
        """Called in the handler of the signal; what is in progress afterwards is given back."""
        limit_s = self.app.conf.worker_soft_shutdown_timeout
        until = time.monotonic() + limit_s
        if UNITS.any():
            log.warning("stopping: units in progress have %s s to end", limit_s)
        while UNITS.any() and time.monotonic() < until:
            time.sleep(_LOOK_S)
