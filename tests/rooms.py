"""Distribution of tests to processes: a file at a time, with costly services started once.

Tests that measure time are marked `alone`: while one runs, the other processes wait.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from xdist.scheduler import LoadFileScheduling

#: Start of a test's path -> the service it needs. One process runs all such tests: it starts what
#: others cannot use (three Cassandra nodes take half a minute and two cores to start, a network of
#: hosts as long), or changes a whole node.
SHARED = {
    "tests/integration/load/test_three_nodes": "three nodes",
    "tests/integration/local/test_clusters": "three nodes",
    "tests/chaos/three_nodes/": "three nodes",
    "tests/hosts/": "hosts",
    "tests/integration/cluster/": "a node with passwords and TLS",
    "tests/integration/scan/": "a filled table",
    "tests/integration/load/test_server_limits": "a strict node",
    "tests/integration/load/test_fallback": "a strict node",
    "tests/chaos/test_cassandra_away": "a strict node",
    "tests/acceptance/test_unreadable_ranges": "a strict node",
}

#: Beginnings of paths, in the order in which their files are given to processes, before all others:
#: what runs alone, as it waits for the tests beside it to end, and those of `unit` are short; then
#: what takes a minute and would be among the last, when the other processes have nothing to do.
FIRST = (
    "tests/acceptance/test_stalled_records",
    "tests/acceptance/test_control",
    "tests/integration/load/test_three_nodes",
    "tests/integration/local/test_clusters",
    "tests/chaos/three_nodes/",
    "tests/unit/",
    "tests/property/",
    "tests/acceptance/test_unreadable_ranges",
)

#: In the command line of a process that xdist has started.
_EXECNET = "exec(eval(sys.stdin.readline()))"


class ByRoom(LoadFileScheduling):  # type: ignore[misc]
    """The scheduler of xdist that gives whole files to processes, in their order."""

    def __init__(self, config: Any, log: Any = None) -> None:
        # Unlike xdist, not the largest files first: those with the most tests are the quickest.
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        """The file of a test, or the service that it shares with other files."""
        of = [room for path, room in SHARED.items() if nodeid.startswith(path)]
        return of[0] if of else str(super()._split_scope(nodeid))


def put_first(items: list[Any]) -> None:
    """Put the tests of `FIRST` in front, where they are shared out among processes."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return

    def place(item: Any) -> int:
        found = (n for n, path in enumerate(FIRST) if item.nodeid.startswith(path))
        return next(found, len(FIRST))

    items.sort(key=place)


@contextmanager
def turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Hold the turn of one test: beside others, or alone. `folder`: the run's, for its locks.

    A test that wants to be alone holds the door lock while it waits for the others to leave the
    room, so no further test enters.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    with (folder / "door").open("w") as door, (folder / "room").open("w") as room:
        fcntl.flock(door, how)
        fcntl.flock(room, how)
        if not alone:
            fcntl.flock(door, fcntl.LOCK_UN)
        yield


def end_processes() -> None:
    """End the test processes of this one like on Ctrl-C: otherwise they would
    be killed, and leave their servers behind."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if _EXECNET in " ".join(child.cmdline()):
                child.terminate()
