"""Keep partial results in files if they are too large for the ledger, which keeps their names.

The ledger lives in Redis's memory. A result above the job's limit goes to its spill folder, which
all hosts of the job must see, and the ledger keeps the name of the file. A job without a folder
ends with a message that names the limit.

A file is named after its job, unit and attempt. An attempt that does not count removes its own
file. The others stay as long as the ledger keeps the job, since it may be resumed, or its result
folded and printed again (`forget_old`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ringhaul.errors import OutputUnusable, Terminal
from ringhaul.new_file import replace_file
from ringhaul.storage.access import check_place

#: First byte of what the ledger keeps: followed by the bytes themselves, or by a file name.
_HERE, _FILE = b"\x00", b"\x01"
#: A unit whose partial result is larger, in memory or packed, is a GROUP BY over nearly every row:
#: it is refused before the worker runs out of memory.
SPILL_BYTES_MAX = 256 << 20

_NAME = re.compile(r"(?P<job>.+)-\d{6,}-[A-Za-z0-9]+\.partial")


class PartialTooLarge(Terminal):
    """The groups of one unit take more memory than is allowed."""

    exit_code = 4


def check_memory(partial_bytes: int) -> None:
    """Raise `PartialTooLarge` if a unit's partial result in memory is too large."""
    if partial_bytes > SPILL_BYTES_MAX:
        raise _too_large(partial_bytes, SPILL_BYTES_MAX)


def _too_large(size_bytes: int, bytes_max: int) -> PartialTooLarge:
    return PartialTooLarge(
        f"the groups of one unit take {size_bytes:,} bytes, more than {bytes_max:,}: group by "
        "fewer distinct values, or unload the rows and aggregate them elsewhere"
    )


def spilled_name(job: str, unit: int, attempt: str) -> str:
    """Return the file name of one attempt; two attempts of a unit may run at once."""
    return f"{job}-{unit:06}-{attempt}.partial"


def spill(partial: bytes, bytes_max: int, folder: str, name: str) -> bytes:
    """Return what the ledger keeps for a partial result; `name` names the file, if needed.

    Raises `PartialTooLarge`, and `OutputUnusable` if the folder cannot be written.
    """
    if len(partial) <= bytes_max:
        return _HERE + partial
    if not folder or len(partial) > SPILL_BYTES_MAX:
        raise _too_large(len(partial), SPILL_BYTES_MAX if folder else bytes_max)
    check_place(folder)
    home = Path(folder)
    with _reporting_errors(home):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replace_file(home / name, temporary=home / f".{name}") as file:
            file.write(partial)
    return _FILE + name.encode()


@contextmanager
def _reporting_errors(home: Path) -> Iterator[None]:
    """Explain why the folder cannot take a file."""
    try:
        yield
    except OSError as error:
        raise OutputUnusable(
            f"{home}: partial results that are too large for Redis cannot be kept here: "
            f"{error.strerror or error}; make room, or set query.spill_dir to a folder that every "
            "worker can write"
        ) from error


def unspill(kept: bytes, folder: str) -> bytes:
    """Return the partial result that the ledger keeps.

    Raises `PartialTooLarge` if its file is gone.
    """
    if kept[:1] == _HERE:
        return kept[1:]
    name = kept[1:].decode()
    if not _NAME.fullmatch(name) or "/" in name:
        raise PartialTooLarge(f"{name[:100]!r} is not the name of a partial result")
    check_place(folder)
    path = Path(folder, name)
    if not path.is_file():
        raise PartialTooLarge(
            f"{path} is not there: partial results that are too large for Redis go through this "
            "folder, which every worker host and this one must share"
        )
    return path.read_bytes()


def forget_spilled(folder: str, name: str) -> None:
    """Remove the file of one attempt, if there is such a file."""
    if folder:
        with suppress(OSError):  # a file that stays is removed with its job's other files
            Path(folder, name).unlink(missing_ok=True)


def forget_old(folder: str, age_s: float, known: Callable[[str], bool]) -> None:
    """Remove files older than `age_s` of jobs that are no longer known.

    The age protects jobs of another ledger that share the folder. This also removes the files of
    attempts that died. Files that cannot be removed stay until the next call.
    """
    before = time.time() - age_s
    try:
        paths = list(Path(folder).iterdir()) if folder else []
    except OSError:  # usually: it was never needed
        return
    for path in paths:
        found = _NAME.fullmatch(path.name.removeprefix("."))
        with suppress(OSError):
            if found and path.stat().st_mtime < before and not known(found["job"]):
                path.unlink()
