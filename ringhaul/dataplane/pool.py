"""Connections of one worker process: one to each replica, kept from unit to unit.

A broken connection is reopened with backoff and jitter; meanwhile its host is skipped and the next
replica takes the rows. The driver's up and down events are used, but a working connection counts
for more than a late event.

Connections are opened in separate threads: a node that accepts connections and then stays silent
would hold up all other rows for as long as the handshake may last.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cassandra.cluster import Cluster, Session
from cassandra.pool import Host

from ringhaul.cql.frames import FrameError
from ringhaul.dataplane.connection import NodeConnection, WireError, WireRefused, wait
from ringhaul.dataplane.retry import backoff_s
from ringhaul.dataplane.sounding import Sounding
from ringhaul.dataplane.window import Window

CONNECT_TIMEOUT_S = 5.0
#: How long the first rows for a host wait for its connection, which takes some milliseconds.
OPENING_WAIT_S = 0.2
#: After a connection has lasted this long, its host starts without penalties when it breaks.
STEADY_S = 10.0
#: A connection idle for longer is probed before rows are sent on it.
HEARTBEAT_IDLE_S = 30.0
HEARTBEAT_TIMEOUT_S = 5.0
#: Most reasons for backing off that are kept for `take_rests`.
RESTS_MAX = 3


@dataclass
class _Absence:
    """A host whose connection broke or could not be opened."""

    failures: int
    again_at_s: float
    reason: str
    refused: bool = False  #: the host is alive but accepts no further connection


class _Opening:
    """A connection that is being opened in a thread."""

    def __init__(self, host: Host, cluster: Cluster, window: Window[Any]) -> None:
        self._host, self._cluster, self._window = host, cluster, window
        self._wire: NodeConnection[Any] | None = None
        self._error: BaseException | None = None
        self._lock, self._unwanted = threading.Lock(), False
        self._thread = threading.Thread(
            target=self._run, name=f"ringhaul-open-{host.address}", daemon=True
        )
        self._thread.start()

    def done(self, wait_s: float) -> bool:
        """Wait up to `wait_s`; return whether opening has ended."""
        self._thread.join(wait_s)
        return not self._thread.is_alive()

    def result(self) -> NodeConnection[Any]:
        """Return the open connection, or raise the error that prevented it. Call it once done."""
        if self._wire is None:
            assert self._error is not None
            raise self._error
        return self._wire

    def abandon(self) -> None:
        """Close the connection, now or once it is open."""
        with self._lock:
            self._unwanted = True
            if self._wire is not None:
                self._wire.close()

    def _run(self) -> None:
        try:
            connection = NodeConnection(
                self._host, self._cluster, self._window, timeout_s=CONNECT_TIMEOUT_S
            )
        except BaseException as error:  # raised again by `result`
            self._error = error
            return
        with self._lock:
            self._wire = connection
            if self._unwanted:
                connection.close()


class ConnectionPool:
    """The connections of one process. Used by one unit at a time, in one thread."""

    def __init__(
        self, session: Session, *, requests_max: int, bytes_max: int, far_max: int = 0
    ) -> None:
        """Set the limits of each connection: unanswered requests, and their bytes.

        `far_max`: unanswered requests to a far server, see `Window`.
        """
        #: Some server does not support the data plane's protocol: use the driver instead.
        self.unsupported = False
        #: Whether rows may be sent in batches (no server has refused a batch), and whether a batch
        #: has succeeded.
        self.batches, self.batches_tried = True, False
        self._cluster = session.cluster
        #: The bounds of each connection, unless a unit has its own.
        self.requests_max, self.far_max = requests_max, far_max
        self._bytes_max = bytes_max
        self._soundings: dict[Host, Sounding] = {}
        self._connections: dict[Host, NodeConnection[Any]] = {}
        self._openings: dict[Host, _Opening] = {}
        self._absent: dict[Host, _Absence] = {}
        self._jitter = random.Random()
        self._rests: list[str] = []

    @property
    def in_flight(self) -> int:
        """The unanswered requests on all connections."""
        return sum(wire.window.requests for wire in self._connections.values())

    @property
    def distance_s(self) -> float:
        """The seconds of a round trip to the farthest connected server."""
        return max((c.window.distance.seconds for c in self._connections.values()), default=0.0)

    def take_rests(self) -> list[str]:
        """Return why hosts were backed off from since the last call: `RESTS_MAX` reasons."""
        rests, self._rests = self._rests, []
        return rests

    def connection(self, host: Host) -> NodeConnection[Any] | None:
        """Return the connection to a host; None while it is being opened or backed off from.

        Raises `WireUnsupported` if the server does not support the protocol.
        """
        connection = self._connections.get(host)
        if connection is not None:
            return connection
        opening = self._openings.get(host)
        wait_s = 0.0
        if opening is None:
            absence = self._absent.get(host)
            if absence is not None and time.monotonic() < absence.again_at_s:
                return None
            if host.is_up is False and absence is None:
                self.drop(host, f"{host.address}: the driver says that it is down")
                return None
            window: Window[Any] = Window(
                requests_max=self.requests_max, bytes_max=self._bytes_max, far_max=self.far_max
            )
            opening = self._openings[host] = _Opening(host, self._cluster, window)
            wait_s = OPENING_WAIT_S if absence is None else 0.0
        if not opening.done(wait_s):
            return None
        del self._openings[host]
        try:
            connection = self._connections[host] = opening.result()
        except WireError as error:
            self.drop(host, str(error))
            self._absent[host].refused = isinstance(error, WireRefused)
            return None
        return connection

    def open_connections(self) -> list[NodeConnection[Any]]:
        """Return the open connections."""
        return list(self._connections.values())

    def sound(self, now_s: float) -> None:
        """Measure the distance of servers whose estimate is in doubt, without waiting for it."""
        for host, sounding in list(self._soundings.items()):
            if sounding.ended():
                del self._soundings[host]
                if host in self._connections:
                    sounding.correct(self._connections[host].window.distance)
        for host, connection in self._connections.items():
            if host not in self._soundings and connection.window.distance.in_doubt(now_s):
                self._soundings[host] = Sounding(host, self._cluster)

    def check(self) -> None:
        """Drop connections that died while idle. For between units; takes some seconds at most."""
        self.forget_busy()
        now_s = time.monotonic()
        probed = [w for w in self.open_connections() if now_s - w.used_at_s >= HEARTBEAT_IDLE_S]
        for connection in probed:
            self._heartbeat(connection, NodeConnection.probe)
        while probed := [
            connection
            for connection in probed
            if not connection.closed and connection.probed_at_s is not None
        ]:
            left_s = now_s + HEARTBEAT_TIMEOUT_S - time.monotonic()
            if left_s <= 0:
                break
            readable, writable = wait(probed, left_s)
            for connection in writable:
                self._heartbeat(connection, NodeConnection.push)
            for connection in readable:
                self._heartbeat(connection, _hear)
        for connection in probed:
            self.drop(connection.host, f"{connection.host.address}: no answer to a heartbeat")

    def _heartbeat(
        self, connection: NodeConnection[Any], step: Callable[[NodeConnection[Any]], None]
    ) -> None:
        """Run one step of a probe on a connection; drop the connection if it fails."""
        if connection.closed:
            return
        try:
            step(connection)
        except (WireError, FrameError) as error:
            self.drop(connection.host, str(error))

    def forget_busy(self) -> None:
        """Close connections with unanswered requests; the hosts are not at fault.

        Their responses would reach the next unit, or the server may have stopped answering.
        """
        for connection in self.open_connections():
            if connection.busy or connection.probed_at_s is not None:
                del self._connections[connection.host]
                connection.close()

    def drop(self, host: Host, reason: str) -> None:
        """Close the connection to a host and back off from the host for a while."""
        now_s = time.monotonic()
        connection = self._connections.pop(host, None)
        if connection is not None:
            connection.close()
            if now_s - connection.opened_at_s > STEADY_S:
                self._absent.pop(host, None)
        failures = self._absent[host].failures + 1 if host in self._absent else 1
        self._absent[host] = _Absence(failures, now_s + backoff_s(failures, self._jitter), reason)
        if reason not in self._rests and len(self._rests) < RESTS_MAX:
            self._rests.append(reason)

    def why_absent(self, hosts: tuple[Host, ...]) -> str:
        """Explain why none of the hosts accepts rows."""
        reasons = [self._absent[host].reason for host in hosts if host in self._absent]
        reasons += [f"{h.address}: not connected yet" for h in hosts if h in self._openings]
        return "; ".join(reasons) or "no replica is known"

    def refused(self, hosts: tuple[Host, ...]) -> bool:
        """Return whether some of the hosts are alive but accept no further connection."""
        return any(host in self._absent and self._absent[host].refused for host in hosts)

    def close(self) -> None:
        """Close all connections."""
        for opening in self._openings.values():
            opening.abandon()
        self._openings.clear()
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


def _hear(connection: NodeConnection[Any]) -> None:
    """Take the response to a probe, if it has come."""
    for reply in connection.pull().others:
        connection.take_probe(reply)
