"""The node name of a worker, by which Celery and Flower know it: one for each worker of a host.

The first worker of a host is `celery@HOST`, the next `celery2@HOST`: two with one name would be one
in Flower and in its metrics. A worker holds its number with a lock, which the kernel releases at
its end, so that a worker that is started again has its name again.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

#: More workers than anybody starts on one host by hand; further ones are named by their process.
NUMBERS_MAX = 64
#: The locked files, for as long as this process lives.
_held: list[int] = []


def node_name(celery_options: Sequence[str]) -> list[str]:
    """Return the options that name a worker: none if it is named by `celery_options`."""
    for option in celery_options:
        if option.startswith(("-n", "--hostname")):
            return []
    return ["--hostname", f"{_name(Path(tempfile.gettempdir()))}@%h"]


def _name(folder: Path) -> str:
    """Return a name that no other worker of this host has now."""
    for number in range(1, NUMBERS_MAX + 1):
        if _take(folder / f"ringhaul-worker-{number}.lock"):
            return "celery" if number == 1 else f"celery{number}"
    return f"celery-{os.getpid()}"


def _take(path: Path) -> bool:
    """Lock a file until this process ends; return whether no other process had locked it. Workers
    of other users may have created it: reading it is enough for that."""
    try:
        try:
            file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o444)
        except FileExistsError:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return False
    _held.append(file)
    return True
