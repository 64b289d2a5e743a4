"""Starting and ending quickly: what a command does around its own work.

Most of a short command's time is Python reading modules. See docs/adr/0010.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from ringhaul.errors import EXIT_COMPLETE, EXIT_FATAL

#: New objects before the garbage collector looks for cycles. Modules are some 250,000 objects that
#: stay, and Python's own 700 have it look through them again and again while they are read.
GC_THRESHOLD_STARTING = 200_000
#: Python's own, for processes that stay and hold large buffers.
GC_THRESHOLDS = (700, 10, 10)
NUMBA_FILE = ".numba_config.yaml"
#: Set to the schedule's name for a step: another beat may go on with it, in a folder of another
#: name.
STEP_VARIABLE = "_RINGHAUL_STEP"


def stand_in_for_closed() -> None:
    """Call this first. Standard output that was closed (`>&-`) becomes one that refuses what is
    written, so that nothing is lost without a word; standard error one that drops it. Python has
    None in their places, and the next file or socket would get their numbers."""
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
    """Call this before the large libraries are imported."""
    gc.set_threshold(GC_THRESHOLD_STARTING)
    # numpy's linear algebra, which is not used here, starts threads when it is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def refuse_foreign_config() -> None:
    """Raise `UsageError` for a `.numba_config.yaml` of somebody else in the current folder. numba
    reads it whatever anybody says, and it can name a folder whose files numba runs."""
    if os.path.lexists(NUMBA_FILE):
        from config.trust import doubt
        from ringhaul.errors import UsageError

        path = Path.cwd() / NUMBA_FILE
        why = doubt(path)
        if why is not None:
            raise UsageError(f"{path} would be read by numba, and {why}: use another folder")


def take_sigterm() -> None:
    """Treat SIGTERM as Ctrl-C from now on, so that a command removes what is of no further use.
    Commands that follow a job call this first; Celery's commands have its handlers."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def stay() -> None:
    """Call this when all modules are read, in a process that stays: a worker, before it forks."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def leave(code: int) -> NoReturn:
    """End the process at once. Python would take every module apart first.

    Whatever has to be closed was closed by those who opened it.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:  # the reader of our output has closed it
            pass
        except OSError as error:  # a full disk under it: not a success
            print(f"error: output cannot be written: {error}", file=sys.__stderr__, flush=True)
            code = code if code != EXIT_COMPLETE else EXIT_FATAL
    os._exit(code)
