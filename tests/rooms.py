"""How tests are shared out among processes: a file at a time, and what is costly to start once."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadFileScheduling

#: Beginning of a test's path -> what it needs, which one process starts for all such tests: three
#: Cassandra nodes take half a minute and two cores to come up, a network of hosts as long.
SHARED = {
    "tests/integration/load/test_three_nodes": "three nodes",
    "tests/integration/local/test_clusters": "three nodes",
    "tests/chaos/test_three_nodes": "three nodes",
    "tests/hosts/": "hosts",
}


class ByRoom(LoadFileScheduling):  # type: ignore[misc]
    """The scheduler of xdist that gives whole files to processes, in their order."""

    def __init__(self, config: Any, log: Any = None) -> None:
        # Not the largest files first, as xdist would: those with the most tests are the quickest.
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        """The file of a test, or what it shares with others."""
        of = [room for path, room in SHARED.items() if nodeid.startswith(path)]
        return of[0] if of else str(super()._split_scope(nodeid))
