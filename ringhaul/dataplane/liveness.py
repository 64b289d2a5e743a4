"""Decide what to do about a silent connection: probe its server, or declare it dead.

A connection that does not even answer a probe is declared dead before its requests time out, but
only if other replicas of all its rows have shown signs of life since: without them there is nothing
to gain, and a try would be lost. If the whole node or network is unreachable, the request timeout
decides. A live server may answer a probe late, since Cassandra answers OPTIONS in the queue of its
writes; its rows then go to other replicas, which costs them one try.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Generic, NamedTuple, TypeVar

from ringhaul.dataplane.connection import NodeConnection

#: A connection with waiting rows is probed after this many seconds without any data. Rows rarely
#: take longer: a node's own write timeout is 2 s.
SILENT_S = 2.0
#: A probed connection that stays silent this long is declared dead, if others live: longer than
#: most garbage collection pauses, shorter than the request timeout, which a busy server may need.
SILENT_PROBED_S = 3.0

Work = TypeVar("Work")


class Judgement(NamedTuple, Generic[Work]):
    """Decision about a silent connection."""

    probe: Sequence[NodeConnection[Work]]  #: connections to probe
    dead: bool


def judge(
    connection: NodeConnection[Work],
    since_s: float,
    stand_ins: Sequence[AbstractSet[NodeConnection[Work]]],
    now_s: float,
) -> Judgement[Work]:
    """Judge a connection that has been silent since `since_s`, for longer than SILENT_S.

    `stand_ins`: the other open connections of each replica set whose rows wait on `connection`. As
    long as all of some set's stand-ins have been silent since the probe, the connection is excused.
    """
    if not all(stand_ins):
        return Judgement([], dead=False)
    probed_at_s = connection.probed_at_s
    probe = [other for other in set().union(*stand_ins) if now_s - other.used_at_s > SILENT_S]
    if probed_at_s is None:
        return Judgement([connection, *probe], dead=False)
    if not all(any(other.used_at_s > probed_at_s for other in others) for others in stand_ins):
        connection.excused_at_s = now_s
        return Judgement(probe, dead=False)
    silent_s = now_s - max(probed_at_s, since_s + SILENT_S, connection.excused_at_s)
    return Judgement(probe, dead=silent_s > SILENT_PROBED_S)
