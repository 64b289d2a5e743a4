"""Start and end quickly: what a command does before and after its actual work.

A short command spends most of its time importing modules. See docs/adr/0010.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from ringhaul.errors import EXIT_COMPLETE, EXIT_FATAL, UsageError

#: New objects before the garbage collector searches for cycles. Modules are some 250,000 objects
#: that stay; with Python's default of 700, it searches them again and again during imports.
GC_THRESHOLD_STARTING = 200_000
#: Python's defaults, for long-running processes that hold large buffers.
GC_THRESHOLDS = (700, 10, 10)
NUMBA_FILE = ".numba_config.yaml"
#: Set to the schedule's name for a step: another beat may continue it, in another folder.
STEP_VARIABLE = "_RINGHAUL_STEP"
#: Set to a file for a step: its command also writes its last error there.
STEP_ERROR_VARIABLE = "_RINGHAUL_STEP_ERROR"
#: Set to a file by `ringhaul.client`: the command also writes there, as JSON, which error it ends
#: with. The client distinguishes errors that have one exit code.
ERROR_FILE_VARIABLE = "_RINGHAUL_ERROR_FILE"


def stand_in_for_closed() -> None:
    """Replace closed standard streams. Call this first.

    Closed standard output (`>&-`) becomes a stream that refuses writes, so that nothing is lost
    silently; closed standard error becomes a stream that drops writes. Otherwise Python has None in
    their places, and the next file or socket gets their numbers.
    """
    for number, name, flags in ((1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, flags)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        stream = open(number, "w", buffering=1, closefd=False)  # noqa: SIM115 - as Python's own
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def start_quickly() -> None:
    """Adjust the process for fast imports. Call this before the large libraries are imported."""
    gc.set_threshold(GC_THRESHOLD_STARTING)
    # numpy's linear algebra, which is not used here, starts threads when it is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def refuse_foreign_config() -> None:
    """Raise `UsageError` if another user's `.numba_config.yaml` is in the current folder. numba
    always reads it, and it can name a folder from which numba runs files."""
    if os.path.lexists(NUMBA_FILE):
        from config.trust import why_untrusted

        path = Path.cwd() / NUMBA_FILE
        why = why_untrusted(path)
        if why is not None:
            raise UsageError(f"{path} would be read by numba, and {why}: use another folder")


def take_sigterm() -> None:
    """Treat SIGTERM as Ctrl-C from now on, so that a command removes its temporary files. Commands
    that follow a job call this first; Celery's commands keep its handlers."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def stay() -> None:
    """Prepare a long-running process. Call this once all modules are imported: in a worker, before
    it forks."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def leave(code: int) -> NoReturn:
    """End the process at once. Python would first take every module apart.

    Everything that must be closed has been closed by its owner.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:  # its reader has closed it
            pass
        except OSError as error:  # its disk is full: not a success
            print(f"error: output cannot be written: {error}", file=sys.__stderr__, flush=True)
            code = code if code != EXIT_COMPLETE else EXIT_FATAL
    if run_folder := sys.modules.get("ringhaul.run_folder"):
        run_folder.remove_own()  # no exit handlers run
    os._exit(code)
