"""Profiles of worker processes, one file for each process.

`worker.profile` selects the profiler:

- `cprofile`: Python's own profiler records every call in the thread that runs the units, in wall
  clock time: waiting for a response counts.
- `pyspy`: the program py-spy samples all threads from outside, a hundred times a second; waiting
  does not count, and the process hardly slows down.

A profile is written when its process ends. `cprofile` also writes between units, so that a process
that is killed leaves a profile.
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
from ringhaul.new_file import replace_file

log = logging.getLogger(__name__)

#: File name suffixes; `pstats` reads the first kind, speedscope.app shows the second.
CPROFILE_SUFFIX = ".prof"
PYSPY_SUFFIX = ".speedscope.json"

#: Minimum time between two writes of a running profile. A write takes about 10 ms.
WRITE_EVERY_S = 1.0
#: How long py-spy may take to write. It is part of the time that a process has to exit.
PYSPY_STOP_S = 5.0

#: prctl(2): sets which process may trace this one, where the kernel lets only parents do so.
_PR_SET_PTRACER = 0x59616D61
_ANY_PROCESS = ctypes.c_ulong(-1)


class Profiler:
    """Profiler interface. This base class records nothing, for workers without a profile."""

    def unit_started(self) -> None:
        """Called when the process starts a unit."""

    def unit_ended(self) -> None:
        """Called when the unit has ended, successfully or not."""

    def stop(self) -> None:
        """Write the profile; called before the process exits."""


def prepare_profiles(settings: Settings) -> Path | None:
    """Return the folder for profiles, created if missing; None if profiling is off.

    Raises `UsageError` if it cannot be created, or if py-spy is needed and not installed.
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
        raise UsageError(f"cannot create {folder} for profiles: {error.strerror}") from error
    return folder


def py_spy() -> str:
    """Return the path of the program py-spy. Raises `UsageError` if it is not installed."""
    beside = Path(sys.executable).with_name("py-spy")  # in an environment that is not activated
    found = str(beside) if beside.is_file() else shutil.which("py-spy")
    if not found:
        raise UsageError(
            "profile pyspy needs the program py-spy, which is not installed: install ringhaul with "
            'its extra profile (pip install "ringhaul[profile]"), or use cprofile, which '
            "comes with Python"
        )
    return found


def start_profiler(settings: Settings) -> Profiler:
    """Start the profiler that the settings name. Raises as `prepare_profiles` does."""
    folder = prepare_profiles(settings)
    if folder is None:
        return Profiler()
    began = time.strftime("%Y%m%dT%H%M%S")
    stem = f"worker-{began}-{socket.gethostname()}-{os.getpid()}"
    if settings.worker.profile == "pyspy":
        return SamplingProfiler(folder / f"{stem}{PYSPY_SUFFIX}", py_spy())
    return CallProfiler(folder / f"{stem}{CPROFILE_SUFFIX}")


class CallProfiler(Profiler):
    """cProfile, active while a unit runs and not while the process waits for the next one."""

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
        """Write the profile so far, atomically: the folder may be read meanwhile."""
        self._profile.create_stats()
        if not self._profile.stats:  # no unit was run; pstats refuses an empty file
            return
        with replace_file(self._path) as file:  # as `dump_stats` does, which follows links
            marshal.dump(self._profile.stats, file)
        self._write_due = time.monotonic() + WRITE_EVERY_S


class SamplingProfiler(Profiler):
    """py-spy, sampling this process from start to exit."""

    def __init__(self, path: Path, program: str) -> None:
        self._path = path
        _let_trace(_ANY_PROCESS)  # py-spy starts tracing before its process id is known
        self._process = subprocess.Popen(
            [
                *(program, "record", "--pid", str(os.getpid()), "--output", str(path)),
                *("--format", "speedscope", "--function", "--hideprogress"),
            ],
            stdin=subprocess.DEVNULL,
            # stderr, where py-spy reports errors, goes to the worker's log.
            stdout=subprocess.DEVNULL,
            # Ctrl-C in the terminal must reach the worker only, which still has units to finish.
            start_new_session=True,
        )
        _let_trace(ctypes.c_ulong(self._process.pid))

    def stop(self) -> None:
        """Make py-spy write. It reacts only to SIGINT, and only once it is up."""
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
                "its output, if any, is above (it may need permission to trace processes)",
                self._process.returncode,
            )


def _let_trace(tracer: ctypes.c_ulong) -> None:
    """Allow a process to trace this one. Only Linux needs this."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, tracer, 0, 0, 0)
