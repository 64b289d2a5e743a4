"""Decide whether a row or its replicas cause an error that repeats. It reads no clock.

An error that does not say what caused it (WRITE_FAILURE, a server error) may come from a replica in
trouble or from the row itself: a vector that an index refuses, a value that trips the server. What
happens to other rows meanwhile shows which it is. Such a row is sent alone, after growing pauses.
If its replicas took another row between two of its failures, that is a witness against the row. Two
witnesses convict it. If no other row is on its way, a control write decides: a write to the same
key that changes nothing (`control.py`). The row is convicted if it fails again after its replicas
took one. Otherwise they may just have recovered.

Errors about the moment (timeouts, overload) are retried as often as `load.retries_max` allows,
whether or not other rows succeed. Only then is the row judged: it may be too large to be written in
time. The control write is made one try earlier.
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

#: A request for several rows is split into single rows after this many failures.
SHARED_TRIES = 2
#: Failures of a single row before it can be convicted: with the pauses of `retry.backoff_s` the
#: fourth comes after some 0.7 s.
ALONE_TRIES = 4
#: Witnesses needed to convict. One may have been on its way already when a replica got into
#: trouble.
WITNESSES = 2
#: Failures of a single row after which the unit fails, or the row is convicted on thin evidence;
#: the seventh comes after some 6 s.
PATIENT_TRIES = 7
#: Thin evidence, for when no control write is possible: some other row was accepted shortly before
#: the row first failed, and only a few rows have failed since.
RECENT_S = 1.0
FEW_ROWS = 10
#: How long the outcome of a control write holds for other rows of the same replicas, from its end.
CONTROL_HOLDS_S = 0.25

#: Errors about the moment, by code and by the driver's exception.
_MOMENT_CODES = (
    ErrorCode.UNAVAILABLE,
    ErrorCode.IS_BOOTSTRAPPING,
    ErrorCode.CAS_WRITE_UNKNOWN,
    ErrorCode.UNPREPARED,
)
#: Errors about the moment that a row's size may also cause.
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
    """Possible cause of an error."""

    UNCLEAR = "unclear"  #: the row or its replicas
    LATE = "late"  #: the moment, rarely the row
    MOMENT = "moment"  #: never the row


def cause_of(error: BaseException) -> Cause:
    """Return what may have caused an error that the driver raised."""
    if isinstance(error, _LATE_ERRORS):
        return Cause.LATE
    return Cause.MOMENT if isinstance(error, _MOMENT_ERRORS) else Cause.UNCLEAR


def cause_of_code(code: int) -> Cause:
    """Return what may have caused an ERROR response."""
    if code in _LATE_CODES:
        return Cause.LATE
    return Cause.MOMENT if code in _MOMENT_CODES else Cause.UNCLEAR


class Suspect(NamedTuple):
    """The history of a request that failed for an unclear reason."""

    first_s: float  #: time of the first failure
    last_s: float  #: time of the latest failure
    previous_s: float  #: time of the failure before the latest, or of the only failure
    #: When any row was last accepted before the first failure: a row accepted later may be the
    #: first that replicas take again.
    taken_before_s: float
    times: int = 1
    witnesses: int = 0
    hosts: frozenset[Hashable] = frozenset()  #: hosts that failed it; emptied once all have


class Controlled(NamedTuple):
    """The outcome of a control write."""

    took: bool | None  #: whether the replicas took it; None: a control write is impossible
    at_s: float  #: when it ended


class Ruling(Enum):
    """Decision about a suspect."""

    AGAIN = "again"  #: undecided: try again
    ROW = "row"  #: its replicas accept other rows
    CLUSTER = "cluster"  #: its replicas accept nothing, not even a control write
    OPEN = "open"  #: still undecided after all allowed tries


_NEVER = Controlled(None, float("-inf"))


class Blame:
    """Evidence that the rows of one unit give about each other."""

    def __init__(self, retries_max: int) -> None:
        """`retries_max`: tries of one request beyond the first; convictions may need one more."""
        self._tries_max = retries_max + 1
        # The last tries belong to a single row; with few tries in all, no late request is split.
        late = self._tries_max - ALONE_TRIES
        #: By cause, the failures after which a request for several rows is split.
        self.shared_tries = {
            Cause.UNCLEAR: SHARED_TRIES,
            Cause.LATE: late if late > ALONE_TRIES else self._tries_max + 1,
        }
        self._taken_s: dict[tuple[Hashable, int], float] = {}  # by host and replica set
        self._failing: dict[int, set[Hashable]] = {}  # by set, since it last took a row
        self._controls: dict[int, Controlled] = {}
        #: When any row was last accepted; the caller sets it whether `watching` or not.
        self.taken_s = float("-inf")
        #: Whether `took` has to be called: some request is suspect.
        self.watching = False

    def took(self, host: Hashable, replica_set: int, now_s: float) -> None:
        """Note that a host accepted a row of a replica set."""
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
        """Note that a host failed a request, whether it was suspect `before` or not.

        `row` identifies the request wherever it is sent; `hosts_count`: hosts that accept it.
        """
        self.watching = True
        self._failing.setdefault(replica_set, set()).add(row)
        if before is None:
            return Suspect(now_s, now_s, now_s, self.taken_s, hosts=frozenset([host]))
        witness = self._taken_s.get((host, replica_set), before.last_s) > before.last_s
        hosts = before.hosts | {host}
        return Suspect(
            before.first_s,
            now_s,
            before.last_s,
            before.taken_before_s,
            before.times + 1,
            before.witnesses + witness,
            hosts if len(hosts) < hosts_count else frozenset(),
        )

    def rule(self, suspect: Suspect, replica_set: int, control: Callable[[], Controlled]) -> Ruling:
        """Rule on a request for a single row.

        `control` makes a control write, which may take seconds. It is called if the traffic gives
        no evidence, once for all rows of the same replicas that fail at about the same time.
        """
        if suspect.times < min(ALONE_TRIES, self._tries_max):
            return Ruling.AGAIN
        if self._is_refuted(suspect, replica_set):
            return Ruling.ROW
        took = self._control(suspect, replica_set, control)
        if took:
            return Ruling.AGAIN
        patient = suspect.times >= min(PATIENT_TRIES, self._tries_max)
        if took is not None:
            return Ruling.CLUSTER if patient else Ruling.AGAIN
        if patient and self._is_rare(suspect, replica_set):
            return Ruling.ROW
        return Ruling.OPEN if suspect.times >= self._tries_max else Ruling.AGAIN

    def rule_at_last(
        self,
        suspect: Suspect | None,
        tries_left: int,
        replica_set: int,
        control: Callable[[], Controlled],
    ) -> bool:
        """Return whether a row is to blame that timed out as often as allowed.

        Call it after each failure. It calls `control` before the last try; see `rule`.
        """
        if suspect is None or suspect.times < ALONE_TRIES or self._tries_max <= 2 * ALONE_TRIES:
            return False
        if tries_left <= 0:
            return self._is_refuted(suspect, replica_set)
        if tries_left == 1 and suspect.witnesses < WITNESSES:
            self._control(suspect, replica_set, control)
        return False

    def _is_refuted(self, suspect: Suspect, replica_set: int) -> bool:
        """Return whether its replicas took other rows, or a control write, while the row failed."""
        if suspect.witnesses >= WITNESSES:
            return True
        kept = self._controls.get(replica_set, _NEVER)
        since_s = max(suspect.first_s, suspect.previous_s - CONTROL_HOLDS_S)
        return bool(kept.took) and since_s < kept.at_s < suspect.last_s

    def _control(
        self, suspect: Suspect, replica_set: int, control: Callable[[], Controlled]
    ) -> bool | None:
        kept = self._controls.get(replica_set, _NEVER)
        if kept.at_s <= suspect.first_s or suspect.last_s - kept.at_s > CONTROL_HOLDS_S:
            kept = self._controls[replica_set] = control()
        return kept.took

    def _is_rare(self, suspect: Suspect, replica_set: int) -> bool:
        """Return whether the evidence of RECENT_S and FEW_ROWS holds."""
        few = len(self._failing.get(replica_set, ())) <= FEW_ROWS
        return few and suspect.taken_before_s >= suspect.first_s - RECENT_S
