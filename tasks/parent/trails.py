"""Breadcrumbs of a worker's processes, read by its parent to find hung processes and crash sites.

Each process maps a file named after its pid, in the parent's run folder. The file stays readable
whatever happens to the process. See `ringhaul.breadcrumb`.
"""

from __future__ import annotations

import logging
import mmap
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from celery.worker import state

from ringhaul.breadcrumb import CRUMB_BYTES, TRAIL, Loss, mark_killed, read_crumb

log = logging.getLogger(__name__)

#: Fraction of a lease after which a hung process is killed: while the lease still holds, so that
#: its parent can report where it was before another worker starts the unit.
STALL_SHARE = 2 / 3


class Trails:
    """The breadcrumbs of one worker. Opened in the parent before it forks."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def open(self, run_folder: Path) -> None:
        """Create the folder for breadcrumbs. Without it, no hung process is detected."""
        folder = run_folder / "trails"
        folder.mkdir()
        self._folder = folder

    def begin(self) -> None:
        """Start leaving breadcrumbs in this process."""
        if self._folder is None:
            return
        with open(self._folder / str(os.getpid()), "w+b") as file:
            file.truncate(CRUMB_BYTES)
            TRAIL.keep_in(mmap.mmap(file.fileno(), CRUMB_BYTES))

    def kill_stalled(self, lease_s: float) -> None:
        """Kill processes whose computing step has made no progress for `STALL_SHARE` of a lease."""
        if self._folder is None:
            return
        for path in self._folder.iterdir():
            pid = int(path.name)
            if not _runs(pid):
                continue
            with _mapped(path) as memory:
                crumb = read_crumb(memory)
                still_s = time.monotonic() - crumb.since_s
                if crumb.killed or not crumb.computing or still_s < STALL_SHARE * lease_s:
                    continue
                mark_killed(memory)
                words = _loss(crumb.where, still_s).words
                log.error("process %s is killed: %s", pid, words, extra=_unit_of(pid))
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def waits(self) -> dict[int, float]:
        """Return for each running process how long it has waited for rate limits, in seconds."""
        found: dict[int, float] = {}
        for path in () if self._folder is None else self._folder.iterdir():
            pid = int(path.name)
            if _runs(pid):
                with _mapped(path) as memory:
                    found[pid] = read_crumb(memory).waited_s
        return found

    def lost(self, pid: int) -> Loss | None:
        """Return where a dead process was; None if that is unknown, or it was between units."""
        path = None if self._folder is None else self._folder / str(pid)
        if path is None or not path.exists():
            return None
        with _mapped(path) as memory:
            crumb = read_crumb(memory)
        path.unlink()
        if not crumb.where:
            return None
        return _loss(crumb.where, time.monotonic() - crumb.since_s if crumb.killed else 0.0)


def _loss(where: dict[str, str | int], still_s: float) -> Loss:
    return Loss(
        stage=str(where.get("stage", "")),
        file=str(where.get("file", "")),
        column=str(where.get("column", "")),
        line=int(where.get("line", 0)),
        first=int(where.get("first", 0)),
        end=int(where.get("end", 0)),
        stalled_s=int(still_s),
    )


def _unit_of(pid: int) -> dict[str, Any]:
    """Return job and unit of the process `pid`, for the log; empty if it has none."""
    for request in state.active_requests:
        if request.worker_pid == pid:
            return {name: request.kwargs.get(name) for name in ("job", "unit")}
    return {}


def _runs(pid: int) -> bool:
    """Return whether `pid` is a running child of this process; a pid may have been reused."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap]:
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), CRUMB_BYTES) as memory:
        yield memory


#: The breadcrumbs of this worker.
TRAILS = Trails()
