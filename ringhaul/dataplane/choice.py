"""Choose the replica for a unit's next frames, among the replicas with an open connection."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic

from cassandra.pool import Host

from ringhaul.dataplane.base import ConnectionsRefused, RequestFailed
from ringhaul.dataplane.blame import Suspect
from ringhaul.dataplane.connection import NodeConnection
from ringhaul.dataplane.pacing import BOUNDLESS, Leave
from ringhaul.dataplane.pool import ConnectionPool
from ringhaul.dataplane.routing import Routing
from ringhaul.dataplane.window import BLOCK_REQUESTS
from ringhaul.dataplane.work import Rows, Work

#: How long rows wait for any of their replicas before the unit is given back.
NO_REPLICA_S = 30.0
#: How long they wait where replicas accept no further connection and the driver can take over.
REFUSED_S = 3.0


class ReplicaChoice(Generic[Rows]):
    """Chooses replicas for one unit, and remembers which replica sets have been out of reach."""

    def __init__(
        self,
        plane: ConnectionPool,
        routing: Routing,
        wire: Callable[[Host], NodeConnection[Work[Rows]] | None],
        *,
        item: str,
        has_fallback: bool,
    ) -> None:
        """`wire` returns the connection to a host, or None; `item` names what is sent, in messages.

        `has_fallback`: whether the driver can do the work instead.
        """
        self._plane, self._routing, self._wire = plane, routing, wire
        self._item, self._has_fallback = item, has_fallback
        self._stranded: dict[int, float] = {}  # replica sets without a connection, since when

    def choose(
        self, replica_set: int, suspect: Suspect | None
    ) -> NodeConnection[Work[Rows]] | None:
        """Return the replica with room and the fewest unanswered requests, local data centre first.

        Hosts that have not failed a suspect request are preferred for it. Among equals, the host
        unused for longest is chosen: a load too slow to fill any window is spread over all. None if
        no replica has room now. Raises `RequestFailed` or `ConnectionsRefused` if no replica has
        been within reach for long.
        """
        hosts = self._routing.replica_sets[replica_set]
        failed = suspect.hosts if suspect is not None else frozenset[object]()
        best: NodeConnection[Work[Rows]] | None = None
        reachable = False
        nearest = ""
        for host in hosts:
            if reachable and host.datacenter != nearest:
                break
            connection = self._wire(host)
            if connection is None:
                continue
            reachable, nearest = True, host.datacenter
            if connection.control_sent_at_s is not None or not connection.window.room():
                continue
            if best is None or (connection.host in failed, _load(connection)) < (
                best.host in failed,
                _load(best),
            ):
                best = connection
        if reachable:
            self._stranded.pop(replica_set, None)
        else:
            self._check_stranded(replica_set)
        return best

    def requests_left(self, leave: Leave) -> int:
        """Return how many requests the job's limit of unanswered requests allows to send now.

        As with a window, 0 until half the limit or a whole block is free.
        """
        if leave.requests == BOUNDLESS:
            return BOUNDLESS
        free = leave.requests - sum(
            connection.window.requests for connection in self._plane.open_connections()
        )
        return free if free >= min(BLOCK_REQUESTS, max(leave.requests // 2, 1)) else 0

    def stand_ins(
        self, connection: NodeConnection[Work[Rows]]
    ) -> list[set[NodeConnection[Work[Rows]]]]:
        """Return the other open connections of each replica set whose rows wait on `connection`."""
        others = {
            other.host: other for other in self._plane.open_connections() if other is not connection
        }
        numbers = {work.replica_set for work in connection.window.works()}
        sets = (self._routing.replica_sets[number] for number in numbers)
        return [{others[host] for host in hosts if host in others} for hosts in sets]

    def _check_stranded(self, replica_set: int) -> None:
        """Raise if no replica of a set has been within reach for too long."""
        hosts = self._routing.replica_sets[replica_set]
        now_s = time.monotonic()
        stranded_s = now_s - self._stranded.setdefault(replica_set, now_s)
        refused = self._plane.refused(hosts)
        if refused and stranded_s > (REFUSED_S if self._has_fallback else NO_REPLICA_S):
            raise ConnectionsRefused(self._plane.why_absent(hosts))
        if stranded_s > NO_REPLICA_S:
            raise RequestFailed(
                f"no replica took {self._item} for {NO_REPLICA_S:.0f} s: "
                f"{self._plane.why_absent(hosts)}"
            )


def _load(connection: NodeConnection[Work[Rows]]) -> tuple[bool, int, float]:
    """Sort key: whether it is being probed, its pending requests, when it last sent a request."""
    return (
        connection.probed_at_s is not None,
        connection.window.requests,
        connection.window.sent_at_s,
    )
