"""Work on its way to replicas, and what is asked of whoever has it sent: see `dispatch`."""

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
    order: NDArray[np.int64]  #: the rows of `rows` that the frames are of, one after the other
    replica_set: int
    tries: int
    #: Frame i is of order[cuts[i]:cuts[i + 1]]; None: of order[i].
    cuts: NDArray[np.int64] | None = None
    #: What is known of frames that failed for an unclear reason.
    suspect: Suspect | None = None

    def rows_of(self, index: int) -> NDArray[np.int64]:
        """The rows that a frame is of."""
        if self.cuts is None:
            return self.order[index : index + 1]
        return self.order[self.cuts[index] : self.cuts[index + 1]]

    def rows_between(self, first: int, last: int) -> int:
        """How many rows the frames first..last-1 are of."""
        return last - first if self.cuts is None else int(self.cuts[last] - self.cuts[first])

    def fit(self, first: int, last: int, rows_max: int) -> int:
        """How many of the frames first..last-1 are of `rows_max` rows together; at least one."""
        if self.cuts is None:
            return min(last - first, rows_max)
        end = int(self.cuts[first]) + rows_max
        return max(int(np.searchsorted(self.cuts[first + 1 : last + 1], end, side="right")), 1)

    def again(self, indexes: NDArray[np.int64]) -> Work[Rows]:
        """Some of the frames, to be tried once more."""
        frames, tries = self.frames.take(indexes), self.tries + 1
        if self.cuts is None:
            return self._replace(frames=frames, order=self.order[indexes], tries=tries)
        rows = [self.rows_of(index) for index in indexes.tolist()]
        cuts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(of_frame) for of_frame in rows], out=cuts[1:])
        return self._replace(frames=frames, order=np.concatenate(rows), tries=tries, cuts=cuts)


@dataclass
class Segment(Generic[Rows]):
    """Frames first..last-1 of some work that are still to be sent."""

    work: Work[Rows]
    first: int
    last: int


@dataclass
class Failed(Generic[Rows]):
    """Frames of some work that the server answered with errors worth another try."""

    work: Work[Rows]
    indexes: list[int]
    reason: str
    suspect: Suspect | None = None


class Bounds(Protocol):
    """What is asked of a user's options."""

    @property
    def consistency(self) -> int: ...
    @property
    def retries_max(self) -> int: ...
    @property
    def request_timeout_s(self) -> float: ...


class Hooks(Protocol):
    """What is called while frames are on their way; see `base.WriterHooks`."""

    @property
    def tick(self) -> Callable[[], None]: ...
    @property
    def throttle(self) -> Callable[[int], None]: ...
    @property
    def leave(self) -> Callable[[], Leave]: ...
