"""What the ledger answers to workers and keepers: the results of its scripts."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import NamedTuple

from ringhaul.ledger.pace import NO_LIMITS, Limits
from ringhaul.ledger.states import JobState


@dataclass(frozen=True)
class Claimed:
    """The unit belongs to this attempt until the lease expires."""

    attempt: int  #: 1-based; counts starts that were not given back.
    spec: str
    limits: Limits = NO_LIMITS  #: The job's limits, and what this unit may have in flight.
    at_ms: int = field(default=0, compare=False)  #: When the unit was claimed, by Redis's clock.


class Refusal(Enum):
    """Why a claim got no unit. The message that led to it is to be dropped in every case."""

    OTHER = "OTHER"  #: The id belongs to a different job than the caller meant.
    STOP = "STOP"  #: The job does not run, or not in this epoch.
    DONE = "DONE"  #: The unit is committed.
    PAUSED = "PAUSED"  #: The job is paused; the unit is issued again when it continues.
    BUSY = "BUSY"  #: Another attempt has it, or it will be issued again in its turn.
    QUARANTINED = "BAD"  #: The unit was quarantined; the scripts' word for it is older.
    UNKNOWN = "UNKNOWN"  #: There is no such job or unit.
    ENOUGH = "ENOUGH"  #: The units that run reach the job's rate limit; it will be issued again.


class Lease(Enum):
    """Whether an attempt still has its unit."""

    OK = "OK"
    PAUSE = "PAUSE"  #: The job is paused: `release` the unit, or finish it if that is impossible.
    LOST = "LOST"  #: Another attempt has it, or it is done: drop the work.
    STOP = "STOP"  #: The job no longer runs: stop at the end of the block, then `release`.
    GONE = "GONE"  #: The job no longer exists, because Redis lost it: drop the work.


class Renewed(NamedTuple):
    """The outcome of renewing a lease."""

    lease: Lease
    limits: Limits = NO_LIMITS  #: The job's limits, and what this unit may have in flight.


class Reserved(NamedTuple):
    """The outcome of reserving rows of a LIMIT; the figures count only with Lease.OK."""

    lease: Lease
    rows: int  #: Rows that the unit may have in all.
    left: int  #: Rows that no unit has.


class Commit(IntEnum):
    """The outcome of a commit."""

    COUNTED = 1
    REPEATED = 0  #: The unit was counted before, by another attempt or by a repeat of this call.
    STALE = -1  #: Another epoch, no such unit, or the job's figures are final.


class Issued(NamedTuple):
    """Units to publish now, with the epoch for their messages."""

    epoch: int
    units: list[int]
    queue: str = ""  #: The job's labels of these names; empty: none.
    kind: str = ""
    traceparent: str = ""


class Swept(NamedTuple):
    """The findings of a sweep."""

    state: JobState | None  #: None: no such job.
    expired: int  #: Expired leases.
    unclaimed: int  #: Units issued and not claimed in time.
