"""Heartbeat file: its age shows whether a worker is alive.

Pinging a worker over the broker costs seconds of CPU and fails while it is busy. Checking a file
costs milliseconds: `find FILE -mmin -1` prints it while it is fresh.
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
        """Create the file or update its time. A failure is logged and does not stop the worker."""
        if self._path is None:
            return
        try:
            # Do not follow a link planted there, and do not block on a pipe.
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
        """Remove the file, so that a stopped worker does not look alive for another minute."""
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
