"""The window of one connection: which requests are unanswered, and how many may be. Pure.

It does no I/O and reads no clock. Whoever owns the socket asks `room`, tells `sent`, and hands in
what came back: stream ids of VOID results to `answered`, any other answer's to `answered_one`, and
the end of the connection to `lost`. What to send again, and which row an error means, are answers.

Stream ids are given out in blocks, so that the bookkeeping costs per block and not per request: a
block's ids are free again when all of its requests are answered, and those free for longest are
given out first. Every id is marked until its answer comes; an answer that nobody waits for is an
error, never a row counted twice.

How many requests may be unanswered adapts to the server (additive increase, multiplicative
decrease, as TCP does, after Chiu and Jain 1989): while answers come quickly the bound grows by a
block a round trip, when they come slowly or the server says it is overloaded it shrinks, between
a floor and a ceiling. Quick means quick as the client saw it; slow means slow beyond doubt: the
time in which the client did not look for answers is not held against the server.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.frames import FrameError
from ringhaul.dataplane import latency

Work = TypeVar("Work")

#: Requests in a block. Measured: below 32 the bookkeeping shows, above 128 acks come in bursts.
BLOCK_REQUESTS = 64
BLOCKS_MAX = 256
#: Requests unanswered at the start, and the least that a slow server brings it down to.
LIMIT_FIRST = 256
LIMIT_FLOOR = 32
#: Answers quicker than this let the bound grow, slower than that shrink it. A node at full speed
#: answers 1,024 small writes in some 10 ms; half a second is a queue that helps nobody.
FAST_S = 0.05
SLOW_S = 0.5
SHRINK_SLOW = 0.75
SHRINK_OVERLOADED = 0.5
#: After a sign of trouble the bound does not grow for this long: refusals come quickly, too.
HOLD_S = 0.5


class Returned(NamedTuple, Generic[Work]):
    """Requests of one piece of work that have no answer: its items `indexes`."""

    work: Work
    indexes: NDArray[np.int64]


@dataclass
class WindowStats:
    """What the window decided, for the unit's result."""

    latencies: Counter[int] = field(default_factory=Counter)  #: bucket (latency.py) -> requests
    limit_max: int = 0
    limit_min: int = 1 << 30
    shrunk: int = 0


@dataclass
class _Block(Generic[Work]):
    work: Work
    first: int  #: item of `work` that the block's first stream id stands for
    count: int
    bytes_count: int
    sent_at_s: float
    left: int


class Window(Generic[Work]):
    """See the module."""

    def __init__(self, *, requests_max: int, bytes_max: int) -> None:
        """`requests_max`: the ceiling of the bound; `bytes_max`: of the requests unanswered."""
        self.stats = WindowStats()  #: where decisions are noted, see `note_in`
        self._ceiling = self._cap = min(requests_max, BLOCK_REQUESTS * BLOCKS_MAX)
        self._floor = min(LIMIT_FLOOR, self._ceiling)
        self._bytes_max = bytes_max
        self._free = deque(range(BLOCKS_MAX))
        self._blocks: dict[int, _Block[Work]] = {}  # in the order in which they were sent
        self._waiting = np.zeros(BLOCKS_MAX * BLOCK_REQUESTS, bool)
        self._shrunk_at_s = self._trouble_at_s = -math.inf
        self._quick = 0  # answers in this round trip
        self._was_full = False  # in this round trip
        self.sent_at_s = -math.inf  #: when something was sent last
        self.requests = 0  #: unanswered
        self.bytes_count = 0  #: of blocks with an unanswered request
        self._set_limit(LIMIT_FIRST)

    def note_in(self, stats: WindowStats) -> None:
        """From now on note decisions there: of the unit that borrows the window."""
        self.stats = stats
        self.cap(self._ceiling)
        self._set_limit(self.limit)

    def cap(self, requests_max: int) -> None:
        """No more than so many unanswered, until the next unit borrows the window.

        For requests with large answers: how large they are, the window cannot know.
        """
        held = self.limit == self._cap < self._ceiling
        self._cap = max(min(requests_max, self._ceiling), 1)
        if self.limit > self._cap or held:
            self._set_limit(max(self.limit, LIMIT_FIRST) if held else self.limit)

    @property
    def bytes_room(self) -> int:
        """Bytes that may be sent now; a single request may be larger."""
        return max(self._bytes_max - self.bytes_count, 0)

    def room(self) -> int:
        """How many requests may be sent now, at most a block and at least one within `bytes_room`.

        None until half a bound or a whole block is free: small blocks cost as much as large ones.
        """
        if not self._free or (self._blocks and self.bytes_count >= self._bytes_max):
            return 0
        free = self.limit - self.requests
        return min(free, BLOCK_REQUESTS) if free >= min(BLOCK_REQUESTS, self.limit // 2) else 0

    def sent(
        self, work: Work, first: int, count: int, bytes_count: int, now_s: float
    ) -> NDArray[np.int64]:
        """Stream ids for the items first..first+count-1 of `work`, sent now. `count` <= room."""
        number = self._free.popleft()
        self._blocks[number] = _Block(work, first, count, bytes_count, now_s, count)
        begin = number * BLOCK_REQUESTS
        self._waiting[begin : begin + count] = True
        self.sent_at_s = now_s
        self.requests += count
        self.bytes_count += bytes_count
        self._was_full = self._was_full or self.requests + BLOCK_REQUESTS > self.limit
        return np.arange(begin, begin + count)

    def answered(self, streams: NDArray[np.int16], now_s: float, looked_at_s: float) -> None:
        """These requests went well; their answers came between `looked_at_s` and `now_s`.

        Raises `FrameError` if one of them was not waited for; then none of them counts, and all
        that were waited for still are.
        """
        if not len(streams):
            return
        if int(streams.min()) < 0 or int(streams.max()) >= len(self._waiting):
            raise FrameError("an answer to a request that was not sent")
        if not self._waiting[streams].all():
            raise FrameError("an answer to a request that nobody waits for")
        self._waiting[streams] = False
        if np.count_nonzero(self._waiting) != self.requests - len(streams):
            self._waiting[streams] = True
            raise FrameError("an answer that came twice")
        counts = np.bincount(streams // BLOCK_REQUESTS)
        for number in np.flatnonzero(counts).tolist():
            self._take(number, int(counts[number]), now_s, looked_at_s)

    def answered_one(self, stream: int, now_s: float, looked_at_s: float) -> tuple[Work, int]:
        """The work and item that an answer other than VOID is about; it is unanswered no more."""
        if not 0 <= stream < len(self._waiting) or not self._waiting[stream]:
            raise FrameError(f"an answer to stream {stream}, which nobody waits for")
        number = stream // BLOCK_REQUESTS
        block = self._blocks[number]
        self._waiting[stream] = False
        self._take(number, 1, now_s, looked_at_s)
        return block.work, block.first + stream % BLOCK_REQUESTS

    def works_of(self, streams: NDArray[np.int16]) -> list[Work]:
        """The work that requests without an answer belong to, by block."""
        numbers = np.unique(streams // BLOCK_REQUESTS).tolist()
        return [self._blocks[number].work for number in numbers if number in self._blocks]

    def overloaded(self, now_s: float) -> None:
        """The server said that it is: fewer requests from now on."""
        self._shrink(SHRINK_OVERLOADED, now_s)

    def oldest_sent_at_s(self) -> float | None:
        """When the oldest block with an unanswered request was sent."""
        return next((block.sent_at_s for block in self._blocks.values()), None)

    def works(self) -> Iterator[Work]:
        """The work of each block with an unanswered request."""
        return (block.work for block in self._blocks.values())

    def lost(self) -> list[Returned[Work]]:
        """The connection is gone: all that has no answer, and a window as at first."""
        returned = []
        for number, block in self._blocks.items():
            begin = number * BLOCK_REQUESTS
            waiting = np.flatnonzero(self._waiting[begin : begin + block.count])
            returned.append(Returned(block.work, block.first + waiting))
        self._free = deque(range(BLOCKS_MAX))
        self._blocks.clear()
        self._waiting[:] = False
        self.requests = self.bytes_count = 0
        self._set_limit(min(LIMIT_FIRST, self._ceiling))
        return returned

    def _take(self, number: int, count: int, now_s: float, looked_at_s: float) -> None:
        """`count` requests of a block were answered."""
        block = self._blocks[number]
        took_s = now_s - block.sent_at_s
        self.stats.latencies[latency.bucket(int(took_s * 1e6))] += count
        self.requests -= count
        block.left -= count
        if block.left:
            return
        del self._blocks[number]
        self._free.append(number)
        self.bytes_count -= block.bytes_count
        if looked_at_s - block.sent_at_s > SLOW_S:
            self._shrink(SHRINK_SLOW, now_s)
        elif took_s < FAST_S and now_s - self._trouble_at_s >= HOLD_S:
            self._grow(block.count)

    def _grow(self, answered: int) -> None:
        """A block more for each round trip, which is as many answers as the bound.

        Only if the bound was what kept more from being sent.
        """
        self._quick += answered
        if self._quick >= self.limit:
            if self._was_full:
                self._set_limit(self.limit + BLOCK_REQUESTS)
            self._quick, self._was_full = 0, False

    def _shrink(self, factor: float, now_s: float) -> None:
        """At most once in the time that slow answers take: they all tell of one queue."""
        self._trouble_at_s = now_s
        if now_s - self._shrunk_at_s < SLOW_S:
            return
        self._shrunk_at_s = now_s
        self.stats.shrunk += 1
        self._set_limit(max(int(self.limit * factor), self._floor))

    def _set_limit(self, limit: int) -> None:
        limit = min(limit, self._cap)
        self.limit = limit  #: requests that may be unanswered
        self.stats.limit_max = max(self.stats.limit_max, limit)
        self.stats.limit_min = min(self.stats.limit_min, limit)
