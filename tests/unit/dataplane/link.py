"""A simulated connection to a server: a window, a way of some length, and a queue.

Time passes in steps of an event each; no thread and no clock. The server takes requests in the
order in which they come, each for `1 / rate` seconds, beside the requests of others.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ringhaul.dataplane.window import Window

#: How often the client looks for responses and sends.
POLL_S = 0.002
SIZE_BYTES = 500


@dataclass
class Link:
    """A client that always has more to send, until `until_s`."""

    one_way_s: float
    rate: float  #: requests a second that the server answers
    window: Window[str] = field(
        default_factory=lambda: Window(requests_max=1024, bytes_max=64 << 20, far_max=16384)
    )
    others: float = 0.0  #: requests a second that others send to the server
    #: Unanswered requests beyond which the server refuses further ones.
    refuses_over: float = float("inf")
    #: How long the client is busy after each look, beyond the poll.
    busy_s: Callable[[], float] = lambda: 0.0
    seed: int = 1
    now_s: float = 0.0
    answered: int = 0
    refused: int = 0
    queue_max_s: float = 0.0  #: longest time in the server's queue; reset it at will

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)
        self._numbers = itertools.count()
        self._free_at_s = 0.0  # when the server has done what it has
        self._ends: deque[float] = deque()  # when it has done each request of ours
        self._coming: list[tuple[float, int, int, bool]] = []  # time, number, stream, refused
        self._others_at_s = 0.0
        self._sounding: tuple[float, float] | None = None
        self._looked_at_s = 0.0
        self.window.distance.saw(2 * self.one_way_s + 1 / self.rate, self.now_s)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            self._receive()
            self._sound()
            self._send()
            self.now_s += POLL_S + self.busy_s()

    def measure(self, seconds: float) -> tuple[float, float]:
        """Let time pass; return how it was used.

        The share of what others left of the server, and the longest queue in seconds.
        """
        self.answered, self.queue_max_s = 0, 0.0
        self.run(seconds)
        return self.answered / seconds / (self.rate - self.others), self.queue_max_s

    def _send(self) -> None:
        while room := self.window.room():
            streams = self.window.sent("w", 0, room, room * SIZE_BYTES, self.now_s)
            arrived_s = self.now_s + self.one_way_s
            for stream in streams.tolist():
                self._serve(arrived_s, stream)

    def _serve(self, arrived_s: float, stream: int) -> None:
        # Others' requests that came before.
        while self.others and self._others_at_s < arrived_s:
            self._free_at_s = max(self._free_at_s, self._others_at_s) + 1 / self.rate
            self._others_at_s += self._draw.expovariate(self.others)
        while self._ends and self._ends[0] <= arrived_s:
            self._ends.popleft()
        refused = len(self._ends) >= self.refuses_over
        done_s = arrived_s
        if not refused:
            self.queue_max_s = max(self.queue_max_s, self._free_at_s - arrived_s)
            done_s = self._free_at_s = max(self._free_at_s, arrived_s) + 1 / self.rate
            self._ends.append(done_s)
        came = (done_s + self.one_way_s, next(self._numbers), stream, refused)
        heapq.heappush(self._coming, came)

    def _receive(self) -> None:
        streams = []
        looked_at_s, self._looked_at_s = self._looked_at_s, self.now_s
        while self._coming and self._coming[0][0] <= self.now_s:
            _, _, stream, refused = heapq.heappop(self._coming)
            if refused:
                self.refused += 1
                self.window.answered_one(stream, self.now_s, looked_at_s)
                self.window.overloaded(self.now_s)
            else:
                streams.append(stream)
        self.answered += len(streams)
        self.window.answered(np.array(streams, np.int16), self.now_s, looked_at_s)

    def _sound(self) -> None:
        """Measure the distance as the pool does."""
        distance = self.window.distance
        if self._sounding is not None and self._sounding[0] <= self.now_s:
            distance.measured(self._sounding[1], self.now_s)
            self._sounding = None
        if self._sounding is None and distance.in_doubt(self.now_s):
            took_s = 2 * self.one_way_s + 0.001
            self._sounding = self.now_s + 3 * took_s, took_s
