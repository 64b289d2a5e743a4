"""The breadcrumbs of a worker's processes, as its parent sees them: who hangs, and where who died.

Each process maps a file named by its pid, in a directory that the parent makes. It stays readable
whatever becomes of the process. See `ringhaul.breadcrumb`.
"""

from __future__ import annotations

import atexit
import logging
import mmap
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ringhaul.breadcrumb import CRUMB_BYTES, TRAIL, Loss, mark_killed, read_crumb

log = logging.getLogger(__name__)

#: Of a lease: a process is killed while the lease still holds, so that its parent can tell the
#: ledger where it was, and nobody else begins the unit without knowing.
STALL_SHARE = 2 / 3


class Trails:
    """Of one worker. Opened in the parent before it forks."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def open(self) -> None:
        """Make the place for them. Without it nobody is found."""
        folder, parent = Path(tempfile.mkdtemp(prefix="ringhaul-")), os.getpid()
        self._folder = folder

        def remove() -> None:
            if os.getpid() == parent:
                shutil.rmtree(folder, ignore_errors=True)

        atexit.register(remove)

    def begin(self) -> None:
        """Let this process leave its crumbs."""
        if self._folder is None:
            return
        with open(self._folder / str(os.getpid()), "w+b") as file:
            file.truncate(CRUMB_BYTES)
            TRAIL.keep_in(mmap.mmap(file.fileno(), CRUMB_BYTES))

    def kill_stalled(self, lease_s: float) -> None:
        """Kill the processes whose computing step has made no progress for most of a lease."""
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
                log.error("process %s is killed: %s", pid, _loss(crumb.where, still_s).words)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def lost(self, pid: int) -> Loss | None:
        """Where a process was that is gone; None: nobody knows, or it was between units."""
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


def _runs(pid: int) -> bool:
    """Whether a child of this process still runs: by now its pid may be anybody's."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap]:
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), CRUMB_BYTES) as memory:
        yield memory


#: Of this worker.
TRAILS = Trails()
