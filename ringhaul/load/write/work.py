"""Work on its way to replicas, and what is asked of whoever has it sent: see `dispatch`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.frames import Frames
from ringhaul.load.pacing import Leave

Rows = TypeVar("Rows")


class Work(NamedTuple, Generic[Rows]):
    """Frames of rows that share a replica set (or are sent again)."""

    rows: Rows
    frames: Frames
    order: NDArray[np.int64]  #: row of `rows` that each frame is of
    replica_set: int
    tries: int


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


class Bounds(Protocol):
    """What is asked of a user's options."""

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
