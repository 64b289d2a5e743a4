"""What all ways of sending requests share: targets, bounds, counts and failures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from cassandra.cluster import Session
from cassandra.query import PreparedStatement

from ringhaul.dataplane.blame import Ruling
from ringhaul.dataplane.pool import Plane
from ringhaul.dataplane.window import WindowStats
from ringhaul.errors import ClusterError, Transient

#: Unanswered requests of one process where nothing else is set: of ours the ceiling of each wire's
#: window (1,024 single statements are some 10 ms of a node at full speed); through the driver more
#: only wait in the server's queue.
REQUESTS_IN_FLIGHT = {"pipeline": 1024, "single": 1024, "token-batch": 128, "concurrent": 128}


class WriteFailed(Transient):
    """A request was tried as often as allowed; the unit will be tried again later."""


class WriteRefused(ClusterError):
    """A request was refused again and again, and nobody can tell whether its row is to blame."""


#: Of a row that is rejected for an error that names no culprit: what was tried.
ALONE = "it failed alone while its replicas took other writes,"


def given_up(
    ruling: Ruling, request: str, tries: int, reason: str, place: str
) -> WriteFailed | WriteRefused:
    """What ends a unit of which a row fails and nothing shows that the row is to blame.

    `request`: what failed, as "a write"; `place`: of its record, empty if nobody knows.
    """
    where = f", of {place}" if place else ""
    text = f"{request} failed {tries} times{where}, the last time with: {reason}"
    if ruling is Ruling.CLUSTER:
        return WriteFailed(
            f"{text}; its replicas refuse even a write that changes nothing, so look at their "
            "logs, disks and commit log"
        )
    return WriteRefused(
        f"{text}; no other write to its replicas got through meanwhile, so look at this record "
        "(would an index refuse a value of it?) as well as at the replicas' logs, disks and "
        "commit log"
    )


class WiresRefused(WriteFailed):
    """No replica of some rows takes a further connection."""


class Target(NamedTuple):
    """Where a writer writes: what a worker process keeps open from unit to unit."""

    session: Session
    plane: Plane
    prepared: PreparedStatement
    keyspace: str
    #: For rows of static columns alone (`EncodedRows.static`); None: there are none.
    statics: PreparedStatement | None = None

    def of(self, *, static: bool) -> Target:
        """The same place, for rows that are bound to the one or the other statement."""
        if not static:
            return self
        assert self.statics is not None
        return self._replace(prepared=self.statics, statics=None)


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """Bounds of one writer."""

    consistency: int
    requests_in_flight_max: int
    bytes_in_flight_max: int
    retries_max: int  #: tries again of one request before the unit is given back
    request_timeout_s: float


@dataclass(frozen=True, kw_only=True)
class WriteBounds:
    """Bounds that a worker process sets for all its writers."""

    requests_in_flight_max: int = 0  #: 0: the strategy's own, see `REQUESTS_IN_FLIGHT`
    bytes_in_flight_max: int = 8 * 2**20
    retries_max: int = 10
    request_timeout_s: float = 12.0

    def requests_of(self, strategy: str) -> int:
        """Requests that a writer of this strategy may have unanswered."""
        return self.requests_in_flight_max or REQUESTS_IN_FLIGHT[strategy]

    def options(self, strategy: str, consistency: int) -> WriteOptions:
        """The bounds of one writer."""
        return WriteOptions(
            consistency=consistency,
            requests_in_flight_max=self.requests_of(strategy),
            bytes_in_flight_max=self.bytes_in_flight_max,
            retries_max=self.retries_max,
            request_timeout_s=self.request_timeout_s,
        )


@dataclass
class WriteStats:
    """Counts of one unit's writes."""

    written: int = 0
    retries: int = 0
    latencies: Counter[int] = field(default_factory=Counter)  #: bucket (latency.py) -> requests
    window: WindowStats | None = None  #: what an adaptive window decided, where there is one
