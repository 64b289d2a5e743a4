"""Profiles of worker processes: where their time goes, one file for each process.

Two ways to look, set by `worker.profile`:

- `cprofile`: Python's own profiler counts every call of the units that a process runs, in the
  thread that runs them, by the clock: waiting for an answer is time too.
- `pyspy`: the program py-spy looks from outside at what all threads are busy with, a hundred times
  a second; waiting is left out, and the process hardly slows down.

A profile is written when its process ends and, by `cprofile`, between units as well: what a process
that was killed had found out by then is there.
"""

from __future__ import annotations

import contextlib
import cProfile
import ctypes
import logging
import marshal
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from config.settings import Settings
from ringhaul.errors import UsageError
from ringhaul.new_file import new_file

log = logging.getLogger(__name__)

#: File names end in these; `pstats` reads the one, speedscope.app shows the other.
CPROFILE_SUFFIX = ".prof"
PYSPY_SUFFIX = ".speedscope.json"

#: Between two writings of a profile that goes on. One takes some 10 ms.
WRITE_EVERY_S = 1.0
#: How long py-spy may take to write, which is part of the time a process has to end in.
PYSPY_STOP_S = 5.0

#: prctl(2): who may trace this process where the kernel lets parents trace their children alone.
_PR_SET_PTRACER = 0x59616D61
_ANYBODY = ctypes.c_ulong(-1)


class Profiler:
    """What is told of a process; this one, which looks at nothing, is there when none is wanted."""

    def unit_started(self) -> None:
        """The process begins to work on a unit."""

    def unit_ended(self) -> None:
        """It does so no more, however the unit ended."""

    def stop(self) -> None:
        """The process is about to end: write."""


def prepare_profiles(settings: Settings) -> Path | None:
    """The folder that profiles go to, made if need be; None when none are wanted.

    Raises `UsageError` when it cannot be made, or py-spy is asked for and not installed.
    """
    worker = settings.worker
    if worker.profile == "off":
        return None
    if worker.profile == "pyspy":
        py_spy()
    folder = worker.profile_dir or settings.state_dir / "profiles"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"no folder for profiles at {folder}: {error.strerror}") from error
    return folder


def py_spy() -> str:
    """Where the program py-spy is. Raises `UsageError` when it is not installed."""
    beside = Path(sys.executable).with_name("py-spy")  # in an environment that is not activated
    found = str(beside) if beside.is_file() else shutil.which("py-spy")
    if not found:
        raise UsageError(
            "profile pyspy needs the program py-spy, which is not installed: install ringhaul with "
            'its extra profile (pip install "/path/to/ringhaul[profile]"), or use cprofile, which '
            "comes with Python"
        )
    return found


def start_profiler(settings: Settings) -> Profiler:
    """The profiler of this process, as its settings have it. Raises as `prepare_profiles`."""
    folder = prepare_profiles(settings)
    if folder is None:
        return Profiler()
    began = time.strftime("%Y%m%dT%H%M%S")
    stem = f"worker-{began}-{socket.gethostname()}-{os.getpid()}"
    if settings.worker.profile == "pyspy":
        return SamplingProfiler(folder / f"{stem}{PYSPY_SUFFIX}", py_spy())
    return CallProfiler(folder / f"{stem}{CPROFILE_SUFFIX}")


class CallProfiler(Profiler):
    """Counts calls while a unit runs, and not while the process waits for the next one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._profile = cProfile.Profile()
        self._write_due = 0.0  # by the monotonic clock

    def unit_started(self) -> None:
        self._profile.enable()

    def unit_ended(self) -> None:
        self._profile.disable()
        if time.monotonic() >= self._write_due:
            self._write()

    def stop(self) -> None:
        self._profile.disable()
        self._write()

    def _write(self) -> None:
        """Write what was counted so far, all at once for whoever reads the folder meanwhile."""
        self._profile.create_stats()
        if not self._profile.stats:  # no unit was run; pstats refuses an empty file
            return
        part = self._path.with_name(f".{self._path.name}.part")
        with new_file(part) as file:  # as `dump_stats` does, which follows links
            marshal.dump(self._profile.stats, file)
        part.replace(self._path)
        self._write_due = time.monotonic() + WRITE_EVERY_S


class SamplingProfiler(Profiler):
    """py-spy, looking at this process from its start to its end."""

    def __init__(self, path: Path, program: str) -> None:
        self._path = path
        _let_trace(_ANYBODY)  # py-spy begins before its process id is known
        self._process = subprocess.Popen(
            [
                *(program, "record", "--pid", str(os.getpid()), "--output", str(path)),
                *("--format", "speedscope", "--function", "--hideprogress"),
            ],
            stdin=subprocess.DEVNULL,
            # What goes wrong is told on stderr: in the worker's log.
            stdout=subprocess.DEVNULL,
            # Ctrl-C in the terminal is for the worker, which still has units to end.
            start_new_session=True,
        )
        _let_trace(ctypes.c_ulong(self._process.pid))

    def stop(self) -> None:
        """Have py-spy write. It listens to SIGINT alone, and only when it is up itself."""
        deadline = time.monotonic() + PYSPY_STOP_S
        while self._process.poll() is None and time.monotonic() < deadline:
            self._process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.5)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if not self._path.exists():
            log.warning(
                "py-spy ended with code %s and wrote no profile of this process; "
                "what it said is above, if anything (it may need the right to trace processes)",
                self._process.returncode,
            )


def _let_trace(tracer: ctypes.c_ulong) -> None:
    """Let a process trace this one. Where nobody asks for that there is nothing to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, tracer, 0, 0, 0)
