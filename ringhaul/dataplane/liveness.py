"""A wire on which nothing comes any more: whether to ask its server, or to take it for dead.

A wire that does not even say that its server lives is taken for dead before the time-out of its
requests. Only when other replicas of all its rows have said so since: without them there is nothing
to win, and a try to lose. Of a node that pauses, of a network that is away, the time-out of
requests decides. And a live server may say so late: Cassandra answers OPTIONS in the queue of its
writes. Its rows go to the others then, which costs them a try.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Generic, NamedTuple, TypeVar

from ringhaul.dataplane.connection import Wire

#: A wire on which rows wait and nothing has come for so long is asked whether its server lives. No
#: answer to a row takes longer as a rule: a node's own time-outs of writes are 2 s.
SILENT_S = 2.0
#: One that was asked and says nothing for so long is taken for dead, if others live: longer than
#: most pauses for garbage, shorter than the time-out of requests, which a busy server may need.
SILENT_ASKED_S = 3.0

Work = TypeVar("Work")


class Judgement(NamedTuple, Generic[Work]):
    """What is to be done about a wire on which nothing comes."""

    ask: Sequence[Wire[Work]]  #: for a sign of life
    dead: bool


def judge(
    wire: Wire[Work], since_s: float, stand_ins: Sequence[AbstractSet[Wire[Work]]], now_s: float
) -> Judgement[Work]:
    """Judge a wire that has been silent since `since_s`, for longer than SILENT_S.

    `stand_ins`: of each replica set whose rows wait on it, the other wires that are open. While not
    all of them have given a sign of life since it was asked, the wire is excused.
    """
    if not all(stand_ins):
        return Judgement([], dead=False)
    asked_at_s = wire.probed_at_s
    ask = [other for other in set().union(*stand_ins) if now_s - other.used_at_s > SILENT_S]
    if asked_at_s is None:
        return Judgement([wire, *ask], dead=False)
    if not all(any(other.used_at_s > asked_at_s for other in others) for others in stand_ins):
        wire.excused_at_s = now_s
        return Judgement(ask, dead=False)
    silent_s = now_s - max(asked_at_s, since_s + SILENT_S, wire.excused_at_s)
    return Judgement(ask, dead=silent_s > SILENT_ASKED_S)
