"""CPU and memory of processes, from /proc: the cost of a client."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """CPU seconds so far and peak resident bytes of the largest process."""

    cpu_s: float
    rss_bytes_max: int


def tree_usage(root: int) -> Usage:
    """Return the usage of a process, its living descendants, and the children they waited for."""
    cpu_s, rss_bytes = 0.0, 0
    for pid in tree(root):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:  # it ended meanwhile
            continue
        cpu_s += sum(int(field) for field in fields[11:15]) / _TICKS_PER_S
        peak = next((line for line in status.splitlines() if line.startswith("VmHWM")), None)
        if peak is not None:
            rss_bytes = max(rss_bytes, int(peak.split()[1]) * 1024)
    return Usage(cpu_s, rss_bytes)


def tree(root: int) -> list[int]:
    """Return the process and all its living descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children.get(pid, [])
    return found
