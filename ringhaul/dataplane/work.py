"""Work on its way to replicas, and the interfaces its sender needs; see `dispatcher`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.frames import Frames
from ringhaul.dataplane.blame import Suspect
from ringhaul.dataplane.pacing import Leave

Rows = TypeVar("Rows")


class Work(NamedTuple, Generic[Rows]):
    """Frames of rows that share a replica set (or are sent again)."""

    rows: Rows
    frames: Frames
    order: NDArray[np.int64]  #: the rows of `rows` that the frames hold, in frame order
    replica_set: int
    tries: int
    #: Frame i holds the rows order[cuts[i]:cuts[i + 1]]; None: the row order[i].
    cuts: NDArray[np.int64] | None = None
    #: What is known about frames that failed for an unclear reason.
    suspect: Suspect | None = None

    def rows_of(self, index: int) -> NDArray[np.int64]:
        """Return the rows that a frame holds."""
        if self.cuts is None:
            return self.order[index : index + 1]
        return self.order[self.cuts[index] : self.cuts[index + 1]]

    def rows_between(self, first: int, last: int) -> int:
        """Return how many rows the frames first..last-1 hold."""
        return last - first if self.cuts is None else int(self.cuts[last] - self.cuts[first])

    def fit(self, first: int, last: int, rows_max: int) -> int:
        """Return how many of the frames first..last-1 hold at most `rows_max` rows; at least 1."""
        if self.cuts is None:
            return min(last - first, rows_max)
        end = int(self.cuts[first]) + rows_max
        return max(int(np.searchsorted(self.cuts[first + 1 : last + 1], end, side="right")), 1)

    def again(self, indexes: NDArray[np.int64]) -> Work[Rows]:
        """Return some of the frames as work for another try."""
        frames, tries = self.frames.take(indexes), self.tries + 1
        if self.cuts is None:
            return self._replace(frames=frames, order=self.order[indexes], tries=tries)
        rows = [self.rows_of(index) for index in indexes.tolist()]
        cuts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(of_frame) for of_frame in rows], out=cuts[1:])
        return self._replace(frames=frames, order=np.concatenate(rows), tries=tries, cuts=cuts)


@dataclass
class Segment(Generic[Rows]):
    """The frames first..last-1 of some work, still to be sent."""

    work: Work[Rows]
    first: int
    last: int


@dataclass
class Failed(Generic[Rows]):
    """Frames that the server answered with errors worth another try."""

    work: Work[Rows]
    indexes: list[int]
    reason: str
    suspect: Suspect | None = None


class Bounds(Protocol):
    """The limits that a dispatcher reads from its owner's options."""

    @property
    def consistency(self) -> int: ...
    @property
    def retries_max(self) -> int: ...
    @property
    def request_timeout_s(self) -> float: ...


class Hooks(Protocol):
    """Callbacks while frames are on their way; see `base.WriterHooks`."""

    @property
    def tick(self) -> Callable[[], None]: ...
    @property
    def throttle(self) -> Callable[[int], None]: ...
    @property
    def leave(self) -> Callable[[], Leave]: ...
