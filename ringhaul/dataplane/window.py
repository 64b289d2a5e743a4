"""The window of one connection: which requests are unanswered, and how many may be. Pure.

It does no I/O and reads no clock. The owner of the socket calls `room` before and `sent` after
sending, and passes in what came back: the stream ids of VOID results to `answered`, any other
response to `answered_one`, and the end of the connection to `lost`. The return values say what to
send again, and which row an error is about.

Stream ids are handed out in blocks, so that bookkeeping costs per block, not per request. The ids
of a block become free when all of its requests are answered; those free for longest are reused
first. Every id is marked until its response comes: an unexpected response is an error, never a row
counted twice.

The limit of unanswered requests adapts to the server (additive increase, multiplicative decrease,
as in TCP, after Chiu and Jain 1989) and to the way there: the requests on the way come on top of
the requests that keep the server busy. While responses are quick the limit grows; when they are
slow, or the server reports overload, it shrinks, between a floor and a ceiling. A response is quick
or slow by the time of its round trip beyond the distance (`distance.py`). "Quick" is measured as
the client saw it; "slow" leaves out the time in which the client did not look for responses.

A new connection starts slowly, as in TCP (Jacobson 1988): the limit doubles per round trip until
the first sign of a queue, and is then set to what was on the way plus FAST_S of queue, by Little's
law. From then on it grows by a block per round trip, or more if the server is far: see `_step`.
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
from ringhaul.dataplane.distance import Distance

Work = TypeVar("Work")

#: Requests in a block. Measured: below 32 the bookkeeping shows, above 128 acks come in bursts.
BLOCK_REQUESTS = 64
BLOCKS_MAX = 256
#: Limit of unanswered requests at the start, and the lowest it shrinks to.
LIMIT_FIRST = 256
LIMIT_FLOOR = 32
#: Time beyond the distance: quicker responses let the limit grow, slower responses shrink it.
#: A node at full speed answers 1,024 small writes in some 10 ms; half a second is a queue without
#: any benefit.
FAST_S = 0.05
SLOW_S = 0.5
SHRINK_SLOW = 0.75
SHRINK_OVERLOADED = 0.5
#: The limit does not grow for this long, plus a round trip, after a sign of trouble: refusals are
#: quick as well.
HOLD_S = 0.5


class Returned(NamedTuple, Generic[Work]):
    """Unanswered requests of one piece of work: its items `indexes`."""

    work: Work
    indexes: NDArray[np.int64]


@dataclass
class WindowStats:
    """Decisions of the window, for the unit's result."""

    latencies: Counter[int] = field(default_factory=Counter)  #: bucket (latency.py) -> requests
    limit_max: int = 0
    limit_min: int = 1 << 30
    shrunk: int = 0


@dataclass
class _Block(Generic[Work]):
    work: Work
    first: int  #: item of `work` that belongs to the block's first stream id
    count: int
    bytes_count: int
    sent_at_s: float
    left: int
    unanswered: int  #: requests on the connection when it was sent, its own included


class _Least(NamedTuple):
    """The shortest time in the queue, and how many requests were unanswered then."""

    queued_s: float
    unanswered: int


_NOTHING = _Least(math.inf, 0)


class Window(Generic[Work]):
    """The unanswered requests of one connection and their adaptive limit; see the module."""

    def __init__(self, *, requests_max: int, bytes_max: int, far_max: int = 0) -> None:
        """Set the bounds.

        `requests_max`: ceiling of the limit; `far_max`: to which the ceiling may rise with the
        distance of the server, 0: it does not; `bytes_max`: most bytes of unanswered requests.
        """
        self.stats = WindowStats()  #: where decisions are recorded, see `note_in`
        self.distance = Distance()
        self._set_bounds(requests_max, far_max)
        self._bytes_max = bytes_max
        self._free = deque(range(BLOCKS_MAX))
        self._blocks: dict[int, _Block[Work]] = {}  # in sending order
        self._waiting = np.zeros(BLOCKS_MAX * BLOCK_REQUESTS, bool)
        self._shrunk_at_s = self._trouble_at_s = -math.inf
        self._starting = True  # until the first sign of a queue
        self._round_at_s, self._least = -math.inf, _NOTHING  # this round trip's, during the start
        self._quick = 0  # answers in this round trip
        self._was_full = False  # in this round trip
        self._full_at_s = -math.inf  # when the limit last kept requests from being sent
        self.sent_at_s = -math.inf  #: when a request was last sent
        self.requests = 0  #: unanswered
        self.bytes_count = 0  #: bytes in blocks with an unanswered request
        self._cap = self._far_max
        self._adapted = LIMIT_FIRST  # the limit, before the cap is applied
        self._set_limit(LIMIT_FIRST)

    def note_in(self, stats: WindowStats) -> None:
        """Record decisions in `stats` from now on, for the unit that uses the window now."""
        self.stats = stats
        self.cap(self._far_max)

    def bound(self, requests_max: int, far_max: int) -> None:
        """Set other bounds, as in `__init__`, for the unit that uses the window now.

        A window whose bounds change starts like a new window: what it has adapted to was within the
        old bounds.
        """
        before = self._requests_max, self._far_max
        self._set_bounds(requests_max, far_max)
        if before != (self._requests_max, self._far_max):
            self._starting, self._round_at_s, self._least = True, -math.inf, _NOTHING
            self._adapted = LIMIT_FIRST
            self.cap(self._far_max)

    def _set_bounds(self, requests_max: int, far_max: int) -> None:
        most = BLOCK_REQUESTS * BLOCKS_MAX
        self._requests_max = min(requests_max, most)
        self._far_max = min(max(far_max, self._requests_max), most)
        self._floor = min(LIMIT_FLOOR, self._requests_max)

    def cap(self, requests_max: int) -> None:
        """Allow at most this many unanswered requests until another unit uses the window.

        For requests with large responses, whose size the window cannot know.
        """
        self._cap = max(requests_max, 1)
        self._set_limit(self._adapted)

    @property
    def bytes_room(self) -> int:
        """Return the bytes that may be sent now; a single request may be larger."""
        return max(self._bytes_max - self.bytes_count, 0)

    def room(self) -> int:
        """Return how many requests may be sent now: at most a block.

        The caller sends no more than fit `bytes_room`, but at least one. The result is 0 until half
        the limit or a whole block is free: a small block costs as much as a large block.
        """
        if not self._free or (self._blocks and self.bytes_count >= self._bytes_max):
            return 0
        free = self.limit - self.requests
        return min(free, BLOCK_REQUESTS) if free >= min(BLOCK_REQUESTS, self.limit // 2) else 0

    def sent(
        self, work: Work, first: int, count: int, bytes_count: int, now_s: float
    ) -> NDArray[np.int64]:
        """Return stream ids for the items first..first+count-1 of `work`, which are sent now.

        `count` is at most `room`.
        """
        number = self._free.popleft()
        self.requests += count
        self._blocks[number] = _Block(work, first, count, bytes_count, now_s, count, self.requests)
        begin = number * BLOCK_REQUESTS
        self._waiting[begin : begin + count] = True
        self.sent_at_s = now_s
        self.bytes_count += bytes_count
        if self.requests + BLOCK_REQUESTS > self.limit:
            self._was_full, self._full_at_s = True, now_s
        return np.arange(begin, begin + count)

    def answered(self, streams: NDArray[np.int16], now_s: float, looked_at_s: float) -> None:
        """Mark requests as done; their responses came between `looked_at_s` and `now_s`.

        Raises `FrameError` for an unexpected response; then no request is marked as done.
        """
        if not len(streams):
            return
        if int(streams.min()) < 0 or int(streams.max()) >= len(self._waiting):
            raise FrameError("a response to a request that was not sent")
        if not self._waiting[streams].all():
            raise FrameError("a response to a request that is not pending")
        self._waiting[streams] = False
        if np.count_nonzero(self._waiting) != self.requests - len(streams):
            self._waiting[streams] = True
            raise FrameError("a response that came twice")
        counts = np.bincount(streams // BLOCK_REQUESTS)
        for number in np.flatnonzero(counts).tolist():
            self._take(number, int(counts[number]), now_s, looked_at_s)

    def answered_one(self, stream: int, now_s: float, looked_at_s: float) -> tuple[Work, int]:
        """Return the work and item of a response other than VOID, and mark it as answered."""
        if not 0 <= stream < len(self._waiting) or not self._waiting[stream]:
            raise FrameError(f"a response to stream {stream}, which is not pending")
        number = stream // BLOCK_REQUESTS
        block = self._blocks[number]
        self._waiting[stream] = False
        self._take(number, 1, now_s, looked_at_s)
        return block.work, block.first + stream % BLOCK_REQUESTS

    def works_of(self, streams: NDArray[np.int16]) -> list[Work]:
        """Return the work of unanswered requests, by block."""
        numbers = np.unique(streams // BLOCK_REQUESTS).tolist()
        return [self._blocks[number].work for number in numbers if number in self._blocks]

    def overloaded(self, now_s: float) -> None:
        """Lower the limit because the server reported overload."""
        self._shrink(SHRINK_OVERLOADED, now_s)

    def oldest_sent_at_s(self) -> float | None:
        """Return when the oldest block with an unanswered request was sent."""
        return next((block.sent_at_s for block in self._blocks.values()), None)

    def works(self) -> Iterator[Work]:
        """Yield the work of each block with an unanswered request."""
        return (block.work for block in self._blocks.values())

    def lost(self) -> list[Returned[Work]]:
        """Return all unanswered requests after the connection ended, and reset the window."""
        returned = []
        for number, block in self._blocks.items():
            begin = number * BLOCK_REQUESTS
            waiting = np.flatnonzero(self._waiting[begin : begin + block.count])
            returned.append(Returned(block.work, block.first + waiting))
        self._free = deque(range(BLOCKS_MAX))
        self._blocks.clear()
        self._waiting[:] = False
        self.requests = self.bytes_count = 0
        self._starting, self._least = True, _NOTHING
        self._quick, self._was_full = 0, False
        self._set_limit(LIMIT_FIRST)
        return returned

    def _take(self, number: int, count: int, now_s: float, looked_at_s: float) -> None:
        """Mark `count` requests of a block as answered."""
        block = self._blocks[number]
        took_s = now_s - block.sent_at_s
        self.stats.latencies[latency.bucket(int(took_s * 1e6))] += count
        if block.left == block.count:
            self.distance.saw(took_s, now_s)
        self.requests -= count
        block.left -= count
        if block.left:
            return
        del self._blocks[number]
        self._free.append(number)
        self.bytes_count -= block.bytes_count
        queued_s = looked_at_s - block.sent_at_s - self.distance.seconds
        if self._starting:
            self._start(block, queued_s, now_s)
        if queued_s > SLOW_S:
            self._shrink(SHRINK_SLOW, now_s)
        elif not self._starting:
            self._grow(block, now_s)

    def _start(self, block: _Block[Work], queued_s: float, now_s: float) -> None:
        """Raise the limit by each answer, or end the start if all of a round trip waited.

        Single blocks wait because many arrive at once: as long as the way is not full, for half
        the distance at most.
        """
        waited = _Least(queued_s, block.unanswered)
        if queued_s > SLOW_S:
            self._end_start(waited, now_s)
        elif block.sent_at_s < self._round_at_s:
            self._least = min(self._least, waited)
        elif FAST_S < self._least.queued_s < math.inf:
            self._end_start(self._least, now_s)
        else:  # it was sent after the round trip began, so the next round trip begins
            self._round_at_s, self._least = now_s, waited
        seen_s = now_s - block.sent_at_s - self.distance.seconds
        quick = seen_s < max(FAST_S, self.distance.seconds / 2)
        if self._starting and quick and self._full_at_s >= block.sent_at_s:
            self._raise(block.count)

    def _end_start(self, waited: _Least, now_s: float) -> None:
        """Lower the limit to what would have waited FAST_S: Little's law.

        It is too high by now, as its effects show a round trip later. This does not go below the
        limit of a new connection.
        """
        self._starting, self._trouble_at_s = False, now_s
        distance_s = self.distance.seconds
        fitting = int(waited.unanswered * (distance_s + FAST_S) / (distance_s + waited.queued_s))
        self._set_limit(min(max(fitting, LIMIT_FIRST), self._adapted))

    def _grow(self, block: _Block[Work], now_s: float) -> None:
        """Raise the limit once per round trip, that is after as many quick responses as the limit.

        Only if the limit kept requests from being sent, and not soon after trouble.
        """
        took_s, distance_s = now_s - block.sent_at_s, self.distance.seconds
        if took_s - distance_s >= FAST_S or now_s - self._trouble_at_s < HOLD_S + distance_s:
            return
        self._quick += block.count
        if self._quick >= self.limit:
            if self._was_full:
                self._raise(self._step(took_s))
            self._quick, self._was_full = 0, False

    def _step(self, took_s: float) -> int:
        """Return by how much to raise the limit in a round trip.

        A block if the server is near. Round trips to a far server are rare, so the step is as much
        as a near server would have got in that time, but makes the queue FAST_S longer at most.
        """
        longer = int(self.limit * FAST_S / max(took_s, FAST_S))
        step = min(self.distance.reach(BLOCK_REQUESTS), longer)
        return max(step // BLOCK_REQUESTS, 1) * BLOCK_REQUESTS

    def _shrink(self, factor: float, now_s: float) -> None:
        """Lower the limit, once per SLOW_S and round trip at most.

        Slow responses all come from the same queue.
        """
        self._starting, self._trouble_at_s = False, now_s
        if now_s - self._shrunk_at_s < SLOW_S + self.distance.seconds:
            return
        self._shrunk_at_s = now_s
        self.stats.shrunk += 1
        self._set_limit(max(int(self.limit * factor), self._floor))

    def _raise(self, requests: int) -> None:
        if self.limit == self._adapted:  # else it is a cap that limits
            self._set_limit(self._adapted + requests)

    def _set_limit(self, adapted: int) -> None:
        ceiling = self._requests_max
        if self._far_max > ceiling:
            ceiling = min(self.distance.reach(ceiling), self._far_max)
        self._adapted = min(adapted, ceiling)
        self.limit = min(self._adapted, self._cap)  #: requests that may be unanswered
        self.stats.limit_max = max(self.stats.limit_max, self.limit)
        self.stats.limit_min = min(self.stats.limit_min, self.limit)
