"""What a run of the tests costs: time, and CPU of test processes, their commands and servers.

CPU, unlike time, is nearly the same on a busy machine. A process adds up what it used itself, what
its ended children used, and what the running ones have used so far. Servers that all processes
share are counted apart. What a command leaves behind when it ends is not counted.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

import psutil

#: Files shown at the end of a run.
DEAREST_SHOWN = 15


class Cost(NamedTuple):
    """Time and CPU, in seconds."""

    wall_s: float = 0.0
    core_s: float = 0.0

    def plus(self, other: Cost) -> Cost:
        return Cost(self.wall_s + other.wall_s, self.core_s + other.core_s)

    def minus(self, other: Cost) -> Cost:
        return Cost(self.wall_s - other.wall_s, self.core_s - other.core_s)


class Costs:
    """The costs of one test process, by test file. `shared`: pids that are counted apart."""

    def __init__(
        self,
        shared: Callable[[], Iterable[int]] = list,
        *,
        now: Callable[[], float] = time.monotonic,
        core_s: Callable[[Iterable[int]], float] | None = None,
    ) -> None:
        self.files: dict[str, Cost] = {}
        self._shared = shared
        self._now = now
        self._core_s = core_s or core_seconds
        self._file = ""
        self._since = Cost()

    def enter(self, file: str, waited_s: float) -> None:
        """A test of `file` begins, after `waited_s` in which no test ran."""
        self._since = self._since.plus(Cost(waited_s))
        if file != self._file:
            self.close()
            self._file, self._since = file, self._spent()

    def close(self) -> None:
        """The last file has ended, if one has begun."""
        if self._file:
            spent = self._spent().minus(self._since)
            self.files[self._file] = self.files.get(self._file, Cost()).plus(spent)
            self._file = ""

    def total_s(self) -> float:
        """CPU since the process began, its start and the collection of tests included."""
        return self._core_s(self._shared())

    def _spent(self) -> Cost:
        return Cost(self._now(), self.total_s())


def own_core_seconds() -> float:
    """CPU of this process alone."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def core_seconds(left_out: Iterable[int] = ()) -> float:
    """CPU of this process and of all it has started, except for the processes `left_out`."""
    total_s = sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    left = set(left_out)
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if child.pid not in left:
                times = child.cpu_times()
                total_s += times.user + times.system + times.children_user + times.children_system
    return total_s


class Run:
    """The costs of all processes of a run."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.files: dict[str, Cost] = {}
        self.core_s = 0.0
        self._now = now
        self._began_s = now()

    def add(self, files: Mapping[str, Iterable[float]], total_s: float) -> None:
        """Add what one process has used: by file the fields of `Cost`, and CPU in all."""
        for name, cost in files.items():
            self.files[name] = self.files.get(name, Cost()).plus(Cost(*cost))
        self.core_s += total_s

    def lines(self, servers_s: float) -> list[str]:
        """The text for the end of the run. `servers_s`: CPU of the shared servers."""
        total_s = self.core_s + servers_s
        lines = [
            f"{(self._now() - self._began_s) / 60:.1f} minutes, {total_s / 60:.1f} core-minutes "
            f"({servers_s / 60:.1f} of shared servers)"
        ]
        if len(self.files) > DEAREST_SHOWN:
            lines.append("the dearest files, in core-seconds and seconds:")
            for name, cost in self._dearest()[:DEAREST_SHOWN]:
                lines.append(f"{cost.core_s:7.1f} {cost.wall_s:7.1f}  {name}")
        return lines

    def table(self) -> str:
        """All files as CSV, the dearest first."""
        lines = [f"{cost.core_s:.1f},{cost.wall_s:.1f},{name}" for name, cost in self._dearest()]
        return "\n".join(["core_s,wall_s,file", *lines, ""])

    def _dearest(self) -> list[tuple[str, Cost]]:
        return sorted(self.files.items(), key=lambda item: -item[1].core_s)
