"""Lanes: parts of a remote file that are read side by side, each from its beginning on.

An example are the columns of a row group: pyarrow takes a little of each in turn, and would wait
for a request whenever one of its buffers is empty. Here the next pieces are already on their way.
The caller makes the requests.
"""

from __future__ import annotations

import bisect
import io
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

#: Requests that run ahead, whatever the number of lanes. Another of s3fs's ten connections to a
#: store is for the piece that is needed now.
LANES_AHEAD = 8
#: Gap between two lanes up to which it is read along, rather than making one more request.
HOLE_BYTES = 256 << 10


class Piece(Protocol):
    """A pending request for the bytes [start, end)."""

    start: int
    end: int

    def data(self) -> bytes:
        """Wait for the bytes and return them. Raises what the request raised."""


class Places(Protocol):
    """A file that is read at any position."""

    def read(self, size: int, /) -> bytes: ...

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int: ...


def join_lanes(lanes: Sequence[tuple[int, int]], piece_bytes: int) -> list[tuple[int, int]]:
    """Return the lanes [start, end), with neighbours joined as far as they fit in one piece.

    A joined lane takes the place of its first one in `lanes`.
    """
    joined: list[tuple[int, int, int]] = []
    for start, end, place in sorted((*lane, place) for place, lane in enumerate(lanes)):
        if joined:
            first, before, earlier = joined[-1]
            if start - before <= HOLE_BYTES and end - first <= piece_bytes:
                joined[-1] = (first, end, min(place, earlier))
                continue
        joined.append((start, end, place))
    return [(start, end) for start, end, _ in sorted(joined, key=lambda lane: lane[2])]


class LaneReader:
    """A file with some parts that are read side by side.

    Holds one piece of each lane and those read ahead: `LANES_AHEAD` at most.
    """

    def __init__(
        self,
        ask: Callable[[int, int], Piece],
        rest: Places,
        lanes: Sequence[tuple[int, int]],
        piece_bytes: int,
    ) -> None:
        """`ask`: starts a request. `rest`: the same file, for bytes outside of the lanes.

        `lanes`: [start, end), at least one, disjoint, in the order in which reading starts.
        `piece_bytes`: largest size of one request.
        """
        self._ask, self._rest = ask, rest
        self._lanes = [_Lane(start, end, piece_bytes) for start, end in lanes]
        self._by_place = sorted(self._lanes, key=_start)
        self._at = 0

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, those at hand first; none only at the end."""
        place = bisect.bisect_right(self._by_place, self._at, key=_start)
        lane = self._by_place[place - 1]
        if not lane.start <= self._at < lane.end:
            self._rest.seek(self._at)
            data = self._rest.read(size)
        else:
            if not lane.holds(self._at):
                self._next(lane)
            data = lane.read(self._at, size)
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        if whence == io.SEEK_END:
            self._at = self._rest.seek(offset, whence)
        else:
            self._at = offset + (self._at if whence == io.SEEK_CUR else 0)
        return self._at

    def tell(self) -> int:
        return self._at

    def _next(self, lane: _Lane) -> None:
        """Make a lane hold the piece at the reader's position."""
        piece = lane.taken(self._at) or lane.request_from(self._at, self._ask)
        ahead = sum(len(each.ahead) for each in self._lanes)
        while ahead < LANES_AHEAD:
            more = [each for each in self._lanes if each.requested < each.end]
            if not more:
                break
            first = min(more, key=lambda each: each.left)
            first.ahead.append(first.request_from(first.requested, self._ask))
            ahead += 1
        lane.hold(piece)


class _Lane:
    def __init__(self, start: int, end: int, piece_bytes: int) -> None:
        self.start, self.end = start, end
        self.requested = start  #: requested up to here
        self.ahead: deque[Piece] = deque()
        pieces = -(-(end - start) // piece_bytes)
        self._piece_bytes = -(-(end - start) // pieces)
        self._at = start
        self._held, self._held_start = b"", start

    @property
    def left(self) -> float:
        """What was requested and not read yet, as a share of the lane.

        Lanes are read at about one pace by their shares, so the lane with the least left is the
        next to wait for. A lane that is read later than others does not fill up.
        """
        return (self.requested - self._at) / (self.end - self.start)

    def holds(self, at: int) -> bool:
        return 0 <= at - self._held_start < len(self._held)

    def read(self, at: int, size: int) -> bytes:
        begin = at - self._held_start
        data = self._held[begin : begin + size]
        self._at = at + len(data)
        return data

    def taken(self, at: int) -> Piece | None:
        """Return the piece ahead at the reader's position, and drop those before it."""
        while self.ahead:
            piece = self.ahead.popleft()
            if piece.start <= at < piece.end:
                return piece
        return None

    def request_from(self, at: int, ask: Callable[[int, int], Piece]) -> Piece:
        self.requested = min(at + self._piece_bytes, self.end)
        return ask(at, self.requested)

    def hold(self, piece: Piece) -> None:
        self._held = b""  # freed before the next piece is taken, not kept beside it
        self._held, self._held_start = piece.data(), piece.start


def _start(lane: _Lane) -> int:
    return lane.start
