"""Measure the distance of a server in a separate thread: see `distance.py`."""

from __future__ import annotations

import threading
import time

from cassandra.cluster import Cluster
from cassandra.pool import Host

from ringhaul.dataplane.connection import WireError, sound
from ringhaul.dataplane.distance import Distance

TIMEOUT_S = 5.0


class Sounding:
    """One measurement; it starts at once."""

    def __init__(self, host: Host, cluster: Cluster) -> None:
        self._host, self._cluster = host, cluster
        self._took_s: float | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"ringhaul-sound-{host.address}", daemon=True
        )
        self._thread.start()

    def ended(self) -> bool:
        """Return whether it has ended: then `correct` may be called."""
        return not self._thread.is_alive()

    def correct(self, distance: Distance) -> None:
        """Correct the estimate by the result, if there is a result."""
        now_s = time.monotonic()
        if self._took_s is None:
            distance.not_measured(now_s)
        else:
            distance.measured(self._took_s, now_s)

    def _run(self) -> None:
        try:
            self._took_s = sound(self._host, self._cluster, timeout_s=TIMEOUT_S)
        except WireError:
            return  # the connection that carries the rows has its own checks
