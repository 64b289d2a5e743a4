"""Whether a row or its replicas are to blame for an error that repeats. Pure: it reads no clock.

An error that names no culprit (WRITE_FAILURE, a server error) may come from a replica in trouble or
from what the row holds: a vector that an index refuses, a value that trips the server. What happens
to other rows meanwhile tells the two apart. Such a row is sent alone, after growing pauses. Each
time it fails, somebody may have seen its replicas take another row since it failed the last time: a
witness. Two witnesses convict the row. Where no other row is on its way, a control write speaks:
a write to the same key that changes nothing (`control.py`).

Errors about the moment (time-outs, overload) are tried as often as `load.retries_max` allows,
whoever else succeeds: only then is the row judged, which may be too large to be written in time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import Enum
from typing import NamedTuple

from cassandra import OperationTimedOut, ReadTimeout, Unavailable, WriteTimeout
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.protocol import IsBootstrappingErrorMessage, OverloadedErrorMessage

from ringhaul.cql.frames import ErrorCode

#: A request for several rows is taken apart after so many failures.
SHARED_TRIES = 2
#: Failures of a row alone before it can be convicted: with the pauses of `retry.backoff_s` the
#: fourth comes after some 0.7 s.
ALONE_TRIES = 4
#: Witnesses that convict. One may have been on its way already when a replica got into trouble.
WITNESSES = 2
#: Failures of a row alone after which the cluster is given up, or the row on thin evidence; the
#: seventh comes after some 6 s.
PATIENT_TRIES = 7
#: Thin evidence, where no control write is possible: some other row was taken shortly
#: before the row failed first, and have refused only so many rows since.
RECENT_S = 1.0
FEW_ROWS = 10
#: So long the outcome of a control write holds for the other rows of its replicas.
CONTROL_HOLDS_S = 0.25

#: Errors about the moment, by code and as the driver raises them.
_MOMENT_CODES = (
    ErrorCode.UNAVAILABLE,
    ErrorCode.IS_BOOTSTRAPPING,
    ErrorCode.CAS_WRITE_UNKNOWN,
    ErrorCode.UNPREPARED,
)
#: Those of them that a row may cause by its size.
_LATE_CODES = (ErrorCode.OVERLOADED, ErrorCode.WRITE_TIMEOUT, ErrorCode.READ_TIMEOUT)
_LATE_ERRORS = (OverloadedErrorMessage, WriteTimeout, ReadTimeout)
_MOMENT_ERRORS = (
    Unavailable,
    IsBootstrappingErrorMessage,
    OperationTimedOut,
    NoHostAvailable,
    ConnectionException,
    OSError,
)


class Cause(Enum):
    """What may be behind an error."""

    UNCLEAR = "unclear"  #: the row as well as its replicas
    LATE = "late"  #: the moment, and rarely the row
    MOMENT = "moment"  #: never the row


def cause_of(error: BaseException) -> Cause:
    """What may be behind an error of the driver."""
    if isinstance(error, _LATE_ERRORS):
        return Cause.LATE
    return Cause.MOMENT if isinstance(error, _MOMENT_ERRORS) else Cause.UNCLEAR


def cause_of_code(code: int) -> Cause:
    """The same of an ERROR answer."""
    if code in _LATE_CODES:
        return Cause.LATE
    return Cause.MOMENT if code in _MOMENT_CODES else Cause.UNCLEAR


class Suspect(NamedTuple):
    """A request that failed for an unclear reason."""

    first_s: float  #: when it failed first
    last_s: float  #: when it failed last
    times: int = 1
    witnesses: int = 0
    hosts: frozenset[Hashable] = frozenset()  #: that failed it; empty again once all did


class Ruling(Enum):
    """What becomes of a suspect."""

    AGAIN = "again"  #: nobody can tell yet
    ROW = "row"  #: its replicas take other rows
    CLUSTER = "cluster"  #: its replicas take nothing, not even a control write
    OPEN = "open"  #: it was tried long enough, and nobody can tell


class Blame:
    """What the rows of one unit tell about each other."""

    def __init__(self, retries_max: int) -> None:
        """`retries_max`: tries of one request beyond the first; convictions need no more."""
        self._tries_max = retries_max + 1
        # Its last tries are those of a row alone; with few in all, it stays as it is.
        late = self._tries_max - ALONE_TRIES
        #: Failures of a request for several rows, by cause, after which it is taken apart.
        self.shared_tries = {
            Cause.UNCLEAR: SHARED_TRIES,
            Cause.LATE: late if late > ALONE_TRIES else self._tries_max + 1,
        }
        self._taken_s: dict[tuple[Hashable, int], float] = {}  # by host and replica set
        self._failing: dict[int, set[Hashable]] = {}  # rows of a set, since it took one
        self._controls: dict[int, tuple[float, bool | None]] = {}
        #: When any row was taken last, to be set whether `watching` or not.
        self.taken_s = float("-inf")
        #: Whether what hosts take is worth telling: some request is suspect.
        self.watching = False

    def took(self, host: Hashable, replica_set: int, now_s: float) -> None:
        """A host took a row of a replica set."""
        self._taken_s[host, replica_set] = self.taken_s = now_s
        self._failing.pop(replica_set, None)

    def suspect(
        self,
        before: Suspect | None,
        host: Hashable,
        replica_set: int,
        row: Hashable,
        hosts_count: int,
        now_s: float,
    ) -> Suspect:
        """Note that a host failed a request, which was suspect `before` or not.

        `row` stands for the request wherever it is sent; `hosts_count`: hosts that take it.
        """
        self.watching = True
        self._failing.setdefault(replica_set, set()).add(row)
        if before is None:
            return Suspect(now_s, now_s, hosts=frozenset([host]))
        witness = self._taken_s.get((host, replica_set), before.last_s) > before.last_s
        hosts = before.hosts | {host}
        return Suspect(
            before.first_s,
            now_s,
            before.times + 1,
            before.witnesses + witness,
            hosts if len(hosts) < hosts_count else frozenset(),
        )

    def rule(
        self, suspect: Suspect, replica_set: int, control: Callable[[], bool | None]
    ) -> Ruling:
        """Rule on a request for a single row.

        `control`: makes a control write; None if there can be none. It is called where the traffic
        tells nothing, once for all rows of the replicas that fail at about the same time.
        """
        if suspect.times < min(ALONE_TRIES, self._tries_max):
            return Ruling.AGAIN
        if suspect.witnesses >= WITNESSES:
            return Ruling.ROW
        took = self._control(suspect, replica_set, control)
        if took:
            return Ruling.ROW
        patient = suspect.times >= min(PATIENT_TRIES, self._tries_max)
        if took is not None:
            return Ruling.CLUSTER if patient else Ruling.AGAIN
        if patient and self._is_rare(suspect, replica_set):
            return Ruling.ROW
        return Ruling.OPEN if suspect.times >= self._tries_max else Ruling.AGAIN

    def rule_at_last(
        self, suspect: Suspect | None, replica_set: int, control: Callable[[], bool | None]
    ) -> bool:
        """Whether a row is to blame that failed as often as allowed for want of time."""
        if suspect is None or suspect.times < ALONE_TRIES or self._tries_max <= 2 * ALONE_TRIES:
            return False
        return suspect.witnesses >= WITNESSES or bool(self._control(suspect, replica_set, control))

    def _control(
        self, suspect: Suspect, replica_set: int, control: Callable[[], bool | None]
    ) -> bool | None:
        kept_s, took = self._controls.get(replica_set, (float("-inf"), None))
        if kept_s <= suspect.first_s or suspect.last_s - kept_s > CONTROL_HOLDS_S:
            took = control()
            self._controls[replica_set] = suspect.last_s, took
        return took

    def _is_rare(self, suspect: Suspect, replica_set: int) -> bool:
        """See RECENT_S."""
        few = len(self._failing.get(replica_set, ())) <= FEW_ROWS
        return few and self.taken_s >= suspect.first_s - RECENT_S
