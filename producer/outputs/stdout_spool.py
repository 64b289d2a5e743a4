"""The folder of the parts that go to standard output: it lives as long as the command.

A command that is killed leaves its folder, with rows that nobody can ever print, as its standard
output is gone. The next command that needs such a folder removes those. Which these are is told by
a lock on each folder, shared by the commands that use it: the kernel lets go of it with them, and
no ledger has to be asked.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from producer.outputs.state_folder import using_state


@contextmanager
def spool_folder(folder: Path) -> Iterator[None]:
    """Have the folder for the length of the block, and remove those that were left beside it.

    It lies in a folder of the state folder. Raises `UsageError` where that cannot be used.
    """
    with using_state(folder.parent.parent):
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _forget_left(folder.parent)
        held = _hold(folder)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _hold(folder: Path) -> int:
    """Make the folder and lock it; the descriptor that holds the lock."""
    while True:
        with suppress(FileExistsError):  # two commands with one --job-id share it
            folder.mkdir(mode=0o700)
        try:
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # somebody took it for one that was left
            continue
        with suppress(OSError):  # a file system without locks: nobody can take it away there
            fcntl.flock(held, fcntl.LOCK_SH)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(held), os.stat(folder)):
                return held
        os.close(held)  # it was removed before the lock was ours


def _forget_left(spool: Path) -> None:
    """Remove the folders that no command holds. Files are inputs, of jobs that may be resumed."""
    for folder in spool.iterdir():
        with suppress(OSError):  # no folder, held, or not to be removed: the next command tries
            found = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(found)
