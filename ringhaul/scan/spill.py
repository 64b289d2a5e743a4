"""Partial results that are too large for the ledger: kept in files, named in the ledger.

The ledger lives in Redis's memory. What passes the job's bound goes to its spill folder, which all
hosts of the job must see, and the ledger keeps the file's name; a job without a folder ends with a
message that says which bound it met.

A file is named by its job, unit and attempt. An attempt that does not count removes its own; the
others stay for as long as the ledger remembers the job, which may be resumed, or its result folded
and printed again (`forget_old`).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ringhaul.errors import OutputUnusable, Terminal
from ringhaul.new_file import new_file
from ringhaul.storage.access import check_place

#: First byte of what the ledger keeps: the bytes themselves, or the name of a file.
_HERE, _FILE = b"\x00", b"\x01"
#: A unit whose partial result passes this, in memory or packed, is a GROUP BY over nearly every
#: row: refused, before the worker's memory is.
SPILL_BYTES_MAX = 256 << 20

_NAME = re.compile(r"(?P<job>.+)-\d{6,}-[A-Za-z0-9]+\.partial")


class PartialTooLarge(Terminal):
    """The groups of one unit take more than may be kept."""

    exit_code = 4


def check_memory(partial_bytes: int) -> None:
    """Raise `PartialTooLarge` for a partial result that grows beyond what a unit may have."""
    if partial_bytes > SPILL_BYTES_MAX:
        raise _too_large(partial_bytes, SPILL_BYTES_MAX)


def _too_large(size_bytes: int, bytes_max: int) -> PartialTooLarge:
    return PartialTooLarge(
        f"the groups of one unit take {size_bytes:,} bytes, more than {bytes_max:,}: group by "
        "fewer distinct values, or unload the rows and aggregate them elsewhere"
    )


def spilled_name(job: str, unit: int, attempt: str) -> str:
    """The name of the file of one attempt, of which there may be two at once."""
    return f"{job}-{unit:06}-{attempt}.partial"


def spill(partial: bytes, bytes_max: int, folder: str, name: str) -> bytes:
    """What to keep in the ledger for a partial result; `name` is for the file, if it takes one.

    Raises `PartialTooLarge`, and `OutputUnusable` for a folder that does not take it.
    """
    if len(partial) <= bytes_max:
        return _HERE + partial
    if not folder or len(partial) > SPILL_BYTES_MAX:
        raise _too_large(len(partial), SPILL_BYTES_MAX if folder else bytes_max)
    check_place(folder)
    home = Path(folder)
    temporary = home / f".{name}"
    with _told(home, temporary):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with new_file(temporary) as file:
            file.write(partial)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(home / name)
    return _FILE + name.encode()


@contextmanager
def _told(home: Path, temporary: Path) -> Iterator[None]:
    """Tell in words why the folder does not take a file, and leave nothing of it."""
    try:
        yield
    except BaseException as error:
        with suppress(OSError):  # of a folder that cannot be used there is nothing to remove
            temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise OutputUnusable(
            f"{home}: partial results that are too large for Redis cannot be kept here: "
            f"{error.strerror or error}; make room, or set query.spill_dir to a folder that every "
            "worker can write"
        ) from error


def unspill(kept: bytes, folder: str) -> bytes:
    """The partial result behind what the ledger keeps. Raises `PartialTooLarge` if it is gone."""
    if kept[:1] == _HERE:
        return kept[1:]
    name = kept[1:].decode()
    if not _NAME.fullmatch(name) or "/" in name:
        raise PartialTooLarge(f"{name[:100]!r} is no name of a partial result that ringhaul makes")
    check_place(folder)
    path = Path(folder, name)
    if not path.is_file():
        raise PartialTooLarge(
            f"{path} is not there: partial results that are too large for Redis go through this "
            "folder, which every worker host and this one must share"
        )
    return path.read_bytes()


def forget_spilled(folder: str, name: str) -> None:
    """Remove the file of one attempt, if it has one."""
    if folder:
        with suppress(OSError):  # then it is removed with those of its job
            Path(folder, name).unlink(missing_ok=True)


def forget_old(folder: str, age_s: float, known: Callable[[str], bool]) -> None:
    """Remove the files of jobs that are not known any more and are older than `age_s`: the folder
    may also be that of jobs that somebody else knows. Those of attempts that died are among them.

    What cannot be removed now stays until the next time.
    """
    before = time.time() - age_s
    try:
        paths = list(Path(folder).iterdir()) if folder else []
    except OSError:  # mostly: it was never needed
        return
    for path in paths:
        found = _NAME.fullmatch(path.name.removeprefix("."))
        with suppress(OSError):
            if found and path.stat().st_mtime < before and not known(found["job"]):
                path.unlink()
