"""A folder for what a process needs only while it lives, below the state folder.

Each process has its own, `STATE/run/PID-RANDOM`, and removes it at its end. A killed process
cannot. So the next command that starts workers, the next worker and the next beat remove the
folders of dead processes. They recognize them by a lock: the kernel releases it when its process
dies, whatever other process has its number by then.

Record locks belong to one process: children that inherit the open file do not keep it.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

#: Below the state folder.
NAME = "run"
_LOCK, _UNLOCKED = "lock", "new"
#: A folder gets its lock within moments; without one after this time, its process was killed.
UNLOCKED_S = 3600.0
#: The folder of this process by state folder, and the locked files.
_own: dict[Path, tuple[Path, IO[bytes]]] = {}
_owner = 0


def run_folder(state_dir: Path) -> Path:
    """Return the folder of this process, which is made at the first call and removed at its end.
    Raises `OSError` if the state folder cannot be written."""
    global _owner
    if _owner != os.getpid():  # a fork, whose parent has the folders so far
        _owner = os.getpid()
        _own.clear()
        atexit.register(remove_own)
    base = state_dir.absolute() / NAME
    if base not in _own:
        remove_dead(state_dir)
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=base))
        lock = open(folder / _UNLOCKED, "wb")  # noqa: SIM115 - for the life of the process
        with suppress(OSError):  # a file system without locks: folders there stay for an hour
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(folder / _UNLOCKED, folder / _LOCK)
        _own[base] = folder, lock
    return _own[base][0]


def remove_own() -> None:
    """Remove the folders of this process, and their parents if they are empty."""
    if _owner != os.getpid():
        return
    for base, (folder, lock) in _own.items():
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()
        with suppress(OSError):  # others are in it
            base.rmdir()
    _own.clear()


def remove_dead(state_dir: Path) -> None:
    """Remove the folders of processes that were killed. Never raises: the next call tries again."""
    base = state_dir.absolute() / NAME
    mine = _own[base][0] if base in _own and _owner == os.getpid() else None
    with suppress(OSError):
        for folder in base.iterdir():
            # To close the file of one's own lock would release it.
            if folder != mine and _is_dead(folder):
                shutil.rmtree(folder, ignore_errors=True)
        base.rmdir()


def _is_dead(folder: Path) -> bool:
    with suppress(OSError):
        try:
            with open(folder / _LOCK, "r+b") as file:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
        except FileNotFoundError:
            return time.time() - folder.stat().st_mtime > UNLOCKED_S
    return False
