"""Targets, bounds, counts and failures that all ways of sending requests share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cassandra.cluster import Session
from cassandra.query import PreparedStatement

from ringhaul.dataplane.blame import Ruling
from ringhaul.dataplane.pool import ConnectionPool
from ringhaul.dataplane.window import WindowStats
from ringhaul.errors import ClusterError, Transient

#: Default limit of unanswered requests of one process to a near server. For our own connections it
#: is the ceiling of each connection's window (1,024 single statements take a node at full speed
#: some 10 ms); through the driver, more requests would only wait in the server's queue.
REQUESTS_IN_FLIGHT = {"pipeline": 1024, "single": 1024, "token-batch": 128}
#: The same to a far server, where most requests are on the way: see `Distance.reach`.
REQUESTS_IN_FLIGHT_FAR = {"pipeline": 16384, "single": 16384, "token-batch": 2048}


class RequestFailed(Transient):
    """A request was tried as often as allowed; the unit will be retried later."""


class RequestRefused(ClusterError):
    """A request was refused repeatedly, and it is unclear whether its row is to blame."""


#: The reason for rejecting a row after errors that do not say what caused them.
FAILED_ALONE = "it failed alone while its replicas took other writes,"


def exhausted_error(
    ruling: Ruling, request: str, tries: int, reason: str, place: str
) -> RequestFailed | RequestRefused:
    """Return the error that ends a unit when a row fails and cannot be shown to be at fault.

    `request`: what failed, such as "a write"; `place`: where its record is, empty if unknown.
    """
    where = f", of {place}" if place else ""
    text = f"{request} failed {tries} times{where}, the last time with: {reason}"
    if ruling is Ruling.CLUSTER:
        return RequestFailed(
            f"{text}; its replicas refuse even a write that changes nothing, so look at their "
            "logs, disks and commit log"
        )
    return RequestRefused(
        f"{text}; no other write to its replicas got through meanwhile, so look at this record "
        "(would an index refuse a value of it?) as well as at the replicas' logs, disks and "
        "commit log"
    )


class ConnectionsRefused(RequestFailed):
    """No replica of some rows accepts another connection."""


class Target(NamedTuple):
    """The session and statements of a writer; a worker process keeps them from unit to unit."""

    session: Session
    plane: ConnectionPool
    prepared: PreparedStatement
    keyspace: str
    #: Statement for rows of static columns only (`EncodedRows.static`); None if not used.
    statics: PreparedStatement | None = None

    def of(self, *, static: bool) -> Target:
        """Return this target with the statement for static rows or for ordinary rows."""
        if not static:
            return self
        assert self.statics is not None
        return self._replace(prepared=self.statics, statics=None)


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """Limits of one writer."""

    consistency: int
    requests_in_flight_max: int
    requests_far_max: int  #: what `requests_in_flight_max` may rise to with the server's distance
    bytes_in_flight_max: int
    retries_max: int  #: retries of one request before the unit is given back
    request_timeout_s: float
    batch_rows_max: int = 0  #: rows in one request; 0: as many as the server takes


@dataclass(frozen=True, kw_only=True)
class RequestBounds:
    """Limits that a worker process sets for all its writers."""

    requests_in_flight_max: int = 0  #: 0: the default of the strategy, see `REQUESTS_IN_FLIGHT`
    bytes_in_flight_max: int = 8 * 2**20
    retries_max: int = 10
    request_timeout_s: float = 12.0
    batch_rows_max: int = 0  #: rows in one request; 0: as many as the server takes

    def within(self, *, requests_in_flight_max: int, batch_rows_max: int) -> RequestBounds:
        """Return the lower of each bound and the job's bound. 0: the job has no such bound."""
        return replace(
            self,
            requests_in_flight_max=_lower(self.requests_in_flight_max, requests_in_flight_max),
            batch_rows_max=_lower(self.batch_rows_max, batch_rows_max),
        )

    def requests_of(self, strategy: str) -> int:
        """Return how many unanswered requests a writer of this strategy may have."""
        return self.requests_in_flight_max or REQUESTS_IN_FLIGHT[strategy]

    def far_requests_of(self, strategy: str) -> int:
        """Return to how many unanswered requests a writer may go if the server is far."""
        return self.requests_in_flight_max or REQUESTS_IN_FLIGHT_FAR[strategy]

    def options(self, strategy: str, consistency: int) -> RequestOptions:
        """Return the limits of one writer."""
        return RequestOptions(
            consistency=consistency,
            requests_in_flight_max=self.requests_of(strategy),
            requests_far_max=self.far_requests_of(strategy),
            bytes_in_flight_max=self.bytes_in_flight_max,
            retries_max=self.retries_max,
            request_timeout_s=self.request_timeout_s,
            batch_rows_max=self.batch_rows_max,
        )


def _lower(one: int, other: int) -> int:
    """Return the lower of two bounds; 0 means no bound."""
    return min(one, other) if one and other else one or other


@dataclass
class RequestStats:
    """Counts of one unit's writes."""

    written: int = 0
    retries: int = 0
    latencies: Counter[int] = field(default_factory=Counter)  #: bucket (latency.py) -> requests
    window: WindowStats | None = None  #: decisions of the adaptive window; None: without a window
