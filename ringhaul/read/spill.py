"""Partial results that are too large for the ledger: kept in files, named in the ledger.

The ledger lives in Redis's memory. What passes the job's bound goes to its spill folder, which all
hosts of the job must see, and the ledger keeps the file's name; a job without a folder ends with a
message that says which bound it met.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ringhaul.errors import Terminal

#: First byte of what the ledger keeps: the bytes themselves, or the name of a file.
_HERE, _FILE = b"\x00", b"\x01"
#: A unit whose partial result passes this is a GROUP BY over nearly every row: refused.
SPILL_BYTES_MAX = 256 << 20


class PartialTooLarge(Terminal):
    """The groups of one unit take more than may be kept."""

    exit_code = 4


def spill(partial: bytes, bytes_max: int, folder: str) -> bytes:
    """What to keep in the ledger for a partial result. Raises `PartialTooLarge`."""
    if len(partial) <= bytes_max:
        return _HERE + partial
    if not folder or len(partial) > SPILL_BYTES_MAX:
        bound = SPILL_BYTES_MAX if folder else bytes_max
        raise PartialTooLarge(
            f"the groups of one unit take {len(partial):,} bytes, more than {bound:,}: group by "
            "fewer distinct values, or unload the rows and aggregate them elsewhere"
        )
    # Named by its content: a unit done twice leaves one file.
    name = f"{hashlib.sha256(partial).hexdigest()}.partial"
    home = Path(folder)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = home / f".{name}.{os.getpid()}.tmp"
    with temporary.open("wb") as file:
        file.write(partial)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(home / name)
    return _FILE + name.encode()


def unspill(kept: bytes, folder: str) -> bytes:
    """The partial result behind what the ledger keeps. Raises `PartialTooLarge` if it is gone."""
    if kept[:1] == _HERE:
        return kept[1:]
    path = Path(folder, kept[1:].decode())
    if not path.is_file():
        raise PartialTooLarge(
            f"{path} is not there: partial results that are too large for Redis go through this "
            "folder, which every worker host and this one must share"
        )
    return path.read_bytes()
