"""How far away a server is: the time of a round trip that waits in no queue. Pure.

A round trip takes the distance plus the time in queues. No request comes back sooner than the
distance, so the lowest round trip is the best estimate. It can only fall; a route that became
longer looks like a queue. If no request has come near the estimate for a while, the estimate is in
doubt, and its owner measures the distance on a connection that carries nothing else: neither our
queue nor another client's queue counts as distance.
"""

from __future__ import annotations

import math

#: Distance over which a limit that is meant for a near server doubles: a node at full speed
#: answers 1,024 small writes in this time.
NEAR_S = 0.01
#: A round trip that takes at most this much longer than the estimate confirms it.
CONFIRM_S = 0.025
#: How long an estimate holds without confirmation, and how long at most while it proves right.
DOUBT_FIRST_S = 10.0
DOUBT_MAX_S = 320.0
#: No server is farther: a satellite in geostationary orbit. What takes longer waits in a queue.
DISTANCE_MAX_S = 0.6


class Distance:
    """The estimate for one server; see the module."""

    def __init__(self) -> None:
        self._least_s = math.inf
        self._confirmed_at_s = -math.inf
        self._doubt_s = DOUBT_FIRST_S

    @property
    def seconds(self) -> float:
        """The estimate; 0 while nothing is known."""
        return 0.0 if math.isinf(self._least_s) else min(self._least_s, DISTANCE_MAX_S)

    def saw(self, took_s: float, now_s: float) -> None:
        """Learn from the round trip of a request that may have waited."""
        self._least_s = min(self._least_s, took_s)
        if took_s <= self.seconds + CONFIRM_S:
            self._confirmed_at_s = now_s
            self._doubt_s = DOUBT_FIRST_S

    def in_doubt(self, now_s: float) -> bool:
        """Return whether the distance should be measured: see `measured`."""
        return math.isfinite(self._least_s) and now_s - self._confirmed_at_s > self._doubt_s

    def measured(self, took_s: float, now_s: float) -> None:
        """Replace the estimate by a round trip that waited for nothing of ours.

        If the estimate was right, it is in doubt again only after twice the time.
        """
        if took_s > self.seconds + CONFIRM_S:
            self._doubt_s = DOUBT_FIRST_S
        else:
            self._doubt_s = min(self._doubt_s * 2, DOUBT_MAX_S)
        self._least_s, self._confirmed_at_s = took_s, now_s

    def not_measured(self, now_s: float) -> None:
        """Keep the estimate for a while after a measurement failed."""
        self._confirmed_at_s = now_s

    def reach(self, requests: int) -> int:
        """Return how many requests keep a server at this distance as busy as `requests` a near one.

        Requests on the way come on top of the requests that the server works on.
        """
        return int(requests * (1 + self.seconds / NEAR_S))
