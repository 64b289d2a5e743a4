"""The file whose age says that a worker is alive.

Asking a worker over the broker costs seconds of CPU and fails while it is busy. Looking at a file
costs milliseconds: `find FILE -mmin -1` names it while it is young.
"""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

log = logging.getLogger(__name__)


class Heartbeat:
    """Touches `path`, or does nothing if it is None."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def beat(self) -> None:
        """The file is there and was written now. That it cannot be does not stop the worker."""
        if self._path is None:
            return
        try:
            # A link that somebody put there is not followed, and a pipe not waited for.
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(self._path, flags, 0o666)
            try:
                os.utime(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            log.warning(
                "worker.heartbeat_file: cannot write %s: %s", self._path, error.strerror or error
            )

    def end(self) -> None:
        """The file is gone: a worker that has stopped is not alive for another minute."""
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
