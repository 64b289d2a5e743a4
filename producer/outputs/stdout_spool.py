"""Temporary folder for the parts of an output to standard output; it lives as long as the command.

A killed command leaves its folder behind, with rows that can no longer be printed, since its
standard output is gone. The next command that needs such a folder removes these. It recognizes them
by a lock on each folder, shared by the commands that use it: the kernel releases it when they die,
so no ledger needs to be queried.
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
    """Create the folder for the length of the block, and remove abandoned ones next to it.

    It is two levels below the state folder. Raises `UsageError` if that cannot be used.
    """
    with using_state(folder.parent.parent):
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _forget_left(folder.parent)
        held = _hold(folder)
    try:
        yield
    finally:
        # A worker that does not know yet that the job has ended may create a file meanwhile.
        ended = folder.with_name(f"{folder.name}.ended")
        with suppress(OSError):
            folder.rename(ended)
        for each in (folder, ended):
            shutil.rmtree(each, ignore_errors=True)
        os.close(held)


def _hold(folder: Path) -> int:
    """Create and lock the folder; return the descriptor that holds the lock."""
    while True:
        with suppress(FileExistsError):  # two commands with one --job-id share it
            folder.mkdir(mode=0o700)
        try:
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # another command removed it as abandoned
            continue
        with suppress(OSError):  # a file system without locks: no command removes folders there
            fcntl.flock(held, fcntl.LOCK_SH)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(held), os.stat(folder)):
                return held
        os.close(held)  # it was removed before we got the lock


def _forget_left(spool: Path) -> None:
    """Remove the folders that no command holds. Keep files: they are inputs of resumable jobs."""
    for folder in spool.iterdir():
        with suppress(OSError):  # no folder, in use, or not removable: the next command retries
            found = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(found)
