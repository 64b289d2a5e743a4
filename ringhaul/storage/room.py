"""Whether disks have room for what is about to be written to them."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from ringhaul.errors import OutputUnusable

_MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class Need:
    """Room that something takes in a folder, which exists."""

    folder: str
    bytes_count: int  #: most bytes that it takes
    what: str  #: what takes the room, such as "sorting rows"
    advice: str  #: how to need less room there


def check_room(needs: Iterable[Need]) -> None:
    """Raise `OutputUnusable` for a disk that has less room than its needs add up to."""
    by_disk: defaultdict[int, list[Need]] = defaultdict(list)
    for need in needs:
        if need.bytes_count:
            by_disk[os.stat(need.folder).st_dev].append(need)
    for together in by_disk.values():
        needed = sum(need.bytes_count for need in together)
        free = free_bytes(together[0].folder)
        if free < needed:
            raise OutputUnusable(_refusal(together, free))


def free_bytes(folder: str) -> int:
    """Return how much this process may still write to the disk of a folder."""
    return shutil.disk_usage(folder).free


def _refusal(needs: list[Need], free: int) -> str:
    folders = list(dict.fromkeys(need.folder for need in needs))
    place = folders[0] if len(folders) == 1 else f"the disk of {' and '.join(folders)}"
    each = " and ".join(f"{need.what} (up to {_mib(need.bytes_count)})" for need in needs)
    advice = " or ".join(dict.fromkeys(need.advice for need in needs))
    return f"{place} has {_mib(free)} free, too little for {each}: free some, or {advice}"


def _mib(bytes_count: int) -> str:
    return f"{bytes_count / _MIB:,.0f} MiB"
