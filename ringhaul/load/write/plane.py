"""The data plane of one worker process: a wire to each replica, kept from unit to unit.

A wire that breaks is opened again with backoff and jitter; in between its host is passed over and
the next replica takes the rows. What the driver says of a host (up, down) is listened to, but a
wire that works is believed more than a late rumour.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Any

from cassandra.cluster import Session
from cassandra.pool import Host

from ringhaul.load.write.retry import backoff_s
from ringhaul.load.write.window import Window
from ringhaul.load.write.wire import Wire, WireError

CONNECT_TIMEOUT_S = 5.0
#: A wire idle for longer is asked whether it still answers before rows are trusted to it.
HEARTBEAT_IDLE_S = 30.0
HEARTBEAT_TIMEOUT_S = 5.0


@dataclass
class _Absence:
    """A host whose wire broke or could not be opened."""

    failures: int
    again_at_s: float
    reason: str


class Plane:
    """The wires of one process. Used by one unit at a time, in one thread."""

    def __init__(self, session: Session, *, requests_max: int, bytes_max: int) -> None:
        """Bounds are of each wire: requests unanswered, and their bytes."""
        self._cluster = session.cluster
        self._requests_max, self._bytes_max = requests_max, bytes_max
        self._wires: dict[Host, Wire[Any]] = {}
        self._absent: dict[Host, _Absence] = {}
        self._jitter = random.Random()

    def wire(self, host: Host) -> Wire[Any] | None:
        """The wire to a host, opened if need be; None while it is to be left alone.

        Raises `WireUnsupported` when the server cannot be spoken to at all.
        """
        wire = self._wires.get(host)
        if wire is not None:
            return wire
        absence = self._absent.get(host)
        if absence is not None and time.monotonic() < absence.again_at_s:
            return None
        if host.is_up is False and absence is None:
            self.drop(host, "the driver says that it is down")
            return None
        window: Window[Any] = Window(requests_max=self._requests_max, bytes_max=self._bytes_max)
        try:
            wire = Wire(host, self._cluster, window, timeout_s=CONNECT_TIMEOUT_S)
        except WireError as error:
            self.drop(host, str(error))
            return None
        self._absent.pop(host, None)
        self._wires[host] = wire
        return wire

    def open_wires(self) -> list[Wire[Any]]:
        """The wires that are open now."""
        return list(self._wires.values())

    def check(self) -> None:
        """Between units: drop wires that died while nobody used them."""
        for wire in self.open_wires():
            if wire.window.requests or not wire.alive(HEARTBEAT_IDLE_S, HEARTBEAT_TIMEOUT_S):
                self.drop(wire.host, "no answer to a heartbeat")

    def drop(self, host: Host, reason: str) -> None:
        """Close the wire to a host and leave the host alone for a while."""
        wire = self._wires.pop(host, None)
        if wire is not None:
            wire.close()
        failures = self._absent[host].failures + 1 if host in self._absent else 1
        pause_s = backoff_s(failures, self._jitter)
        self._absent[host] = _Absence(failures, time.monotonic() + pause_s, reason)

    def why_absent(self, hosts: tuple[Host, ...]) -> str:
        """Why none of the hosts takes rows, for people."""
        reasons = [f"{h.address}: {self._absent[h].reason}" for h in hosts if h in self._absent]
        return "; ".join(reasons) or "no replica is known"

    def close(self) -> None:
        """Close all wires."""
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()
