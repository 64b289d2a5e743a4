"""Frames to replicas: queues, wires, windows, and what is to be done when something goes wrong.

The part of the data plane that writes and reads have in common. Who uses it puts frames into the
queue of their replica set and turns the wheel: each turn sends what the windows have room for and
takes what has come. What an answer means is the user's: see `_take`. An error finds its frame
here, and is about the row, about the moment (the frame is sent again after a pause), about the
statement (prepared again on that wire) or about the job.
"""

from __future__ import annotations

import heapq
import itertools
import random
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic

import numpy as np
from cassandra.pool import Host
from numpy.typing import NDArray

from ringhaul.cql.failures import with_reasons
from ringhaul.cql.frames import (
    ErrorCode,
    FrameError,
    Opcode,
    Reply,
    ServerError,
    execute_values,
    prepare_body,
    read_error,
    read_prepared_id,
)
from ringhaul.dataplane import liveness
from ringhaul.dataplane.base import ALONE, Target, WiresRefused, WriteFailed, given_up
from ringhaul.dataplane.blame import Blame, Cause, Ruling, Suspect, cause_of_code
from ringhaul.dataplane.connection import CONTROL_STREAM, Wire, WireError, wait
from ringhaul.dataplane.control import Control
from ringhaul.dataplane.pacing import BOUNDLESS, TICK_S, Leave
from ringhaul.dataplane.retry import Verdict, backoff_s, classify_code
from ringhaul.dataplane.routing import Routing
from ringhaul.dataplane.window import BLOCK_REQUESTS, WindowStats
from ringhaul.dataplane.work import Bounds, Failed, Hooks, Rows, Segment, Work
from ringhaul.errors import ClusterError

#: How long rows wait for any of their replicas before the unit is given back.
NO_REPLICA_S = 30.0
#: The same of loads, which the driver can write, where replicas take no further connection.
REFUSED_S = 3.0
#: While no wire is open, how often to look for one.
OPENING_POLL_S = 0.02
#: While every wire has more than a block of requests to wait for, answers gather for this long once
#: the first has come: a turn costs as much for one as for a hundred.
GATHER_S = 0.002
#: A throttle that held rows up for longer is at work (see `_send`), and so long is time to listen.
PACED_S = 0.05
#: Answers that say the server has too much to do: the window shrinks.
_OVERLOAD_CODES = (
    ErrorCode.OVERLOADED,
    ErrorCode.WRITE_TIMEOUT,
    ErrorCode.READ_TIMEOUT,
    ErrorCode.UNAVAILABLE,
)


class Dispatcher(ABC, Generic[Rows]):
    """See the module. Belongs to one unit; the wires are the worker process's."""

    #: For messages: what the cluster does not do, what no replica took, what failed.
    refusal = "takes no rows"
    item = "rows"
    request = "a write"
    #: What is sent may be sent again. If not, a wire is given its whole time: each row without an
    #: answer is one of which nobody knows whether it was done.
    repeatable = True
    #: What is sent are writes to rows, see `control`.
    controllable = True
    has_fallback = False  #: the driver can do the same work

    def __init__(
        self, target: Target, bounds: Bounds, hooks: Hooks, window_stats: WindowStats
    ) -> None:
        self._target, self._bounds, self._callbacks = target, bounds, hooks
        self._plane = target.plane
        self._routing = Routing(target.session, target.keyspace)
        self._window_stats = window_stats
        self._queues: dict[int, deque[Segment[Rows]]] = {}
        self._waiting: list[tuple[float, int, Work[Rows]]] = []  # heap by time to try again
        self._numbers = itertools.count()  # breaks ties in the heap
        self._jitter = random.Random()
        #: By id of the work, and whether its frames are suspect; emptied by each `_receive`.
        self._failed: dict[tuple[int, bool], Failed[Rows]] = {}
        self._blame = Blame(bounds.retries_max)
        self._control_write = Control(target.session, target.prepared, bounds.consistency)
        self._stranded: dict[int, float] = {}  # replica sets without a wire, since when
        self._paced = False
        self._plane.check()
        self._ticked_at = self._looked_at_s = time.monotonic()

    def close(self) -> None:
        """Let go of the wires that would give this unit's answers to the next."""
        self._plane.forget_busy()

    @abstractmethod
    def _take(self, wire: Wire[Work[Rows]], looked_at_s: float) -> None:
        """Take the answers on a wire; they came after `looked_at_s`.

        Errors are handed to `_take_error`, and what comes on CONTROL_STREAM to `_prepared`.
        """

    @abstractmethod
    def _refused(self, work: Work[Rows], index: int, reason: str) -> None:
        """The server will never take this row."""

    def _as_sent(self, segment: Segment[Rows], leave: Leave) -> Segment[Rows]:
        """What stands at the head of a queue, in the frames that are to be sent now."""
        return segment

    def _as_repeated(self, again: Work[Rows]) -> Work[Rows]:
        """Frames that are sent once more, as they are to be then."""
        return again

    def _sent(
        self, wire: Wire[Work[Rows]], work: Work[Rows], first: int, streams: NDArray[np.int64]
    ) -> None:
        """The frames from `first` on were given these stream ids."""

    @abstractmethod
    def _take_apart(self, work: Work[Rows], index: int) -> bool:
        """Send what shares a frame one by one instead; whether several do."""

    def _place_of(self, work: Work[Rows], index: int) -> str:
        """Where a row stands in the input, in words; empty where nobody knows."""
        return ""

    def _erred(self, host: Host, work: Work[Rows], index: int, error: ServerError) -> None:
        """The cluster could not do it now, or not for this row: see `blame`."""
        reason = f"{error.name}: {with_reasons(error.message)}"
        suspect, cause = None, cause_of_code(error.code)
        if cause is not Cause.MOMENT:
            suspect = self._suspect(host, work, index)
            if suspect.times >= self._blame.shared_tries[cause] and self._take_apart(work, index):
                return
            if self._convicted(work, index, suspect, cause, reason):
                self._refused(work, index, f"{reason}; {ALONE} {suspect.times} times")
                return
        key = id(work), cause is Cause.UNCLEAR
        failed = self._failed.setdefault(key, Failed(work, [], ""))
        failed.indexes.append(index)
        failed.reason, failed.suspect = reason, suspect

    def _suspect(self, host: Host, work: Work[Rows], index: int) -> Suspect:
        hosts = len(self._routing.replica_sets[work.replica_set])
        row = id(work.rows), int(work.order[index if work.cuts is None else work.cuts[index]])
        return self._blame.suspect(
            work.suspect, host, work.replica_set, row, hosts, time.monotonic()
        )

    def _convicted(
        self, work: Work[Rows], index: int, suspect: Suspect, cause: Cause, reason: str
    ) -> bool:
        """Whether a row is to blame that was refused again. Raises if the cluster is."""
        if work.cuts is not None:
            return False

        def control() -> bool | None:
            self._callbacks.tick()
            if not self.controllable:
                return None
            begin, end = work.frames.offsets[index], work.frames.offsets[index + 1]
            return self._control_write.take(execute_values(work.frames.buffer[begin:end].tobytes()))

        if cause is Cause.LATE:
            at_last = work.tries >= self._bounds.retries_max
            return at_last and self._blame.rule_at_last(suspect, work.replica_set, control)
        ruling = self._blame.rule(suspect, work.replica_set, control)
        if ruling in (Ruling.CLUSTER, Ruling.OPEN):
            raise given_up(ruling, self.request, suspect.times, reason, self._place_of(work, index))
        return ruling is Ruling.ROW

    def _watch(self, wire: Wire[Work[Rows]], streams: NDArray[np.int16]) -> list[int]:
        """The replica sets of requests that went well, if some request is suspect.

        To be asked before the window takes the answers, and told to `_took` after.
        """
        if not self._blame.watching:
            return []
        return list({work.replica_set for work in wire.window.works_of(streams)})

    def _took(self, wire: Wire[Work[Rows]], replica_sets: list[int], now_s: float) -> None:
        self._blame.taken_s = now_s
        for number in replica_sets:
            self._blame.took(wire.host, number, now_s)

    def _unanswered(self, work: Work[Rows], indexes: NDArray[np.int64], reason: str) -> None:
        """The connection ended before these were answered.

        Sending a row twice is harmless: it carries its own timestamp; see `_as_repeated`.
        """
        self._again(work, indexes, reason)

    def _pending(self) -> bool:
        """Something is to be sent or was not answered yet."""
        return bool(self._queues or self._waiting or self._busy())

    def _busy(self) -> bool:
        """Some wire has rows that are not answered."""
        return any(wire.busy for wire in self._plane.open_wires())

    def _starving(self) -> bool:
        """Some wire has nothing to do, and nothing that is queued is for it."""
        idle = [wire for wire in self._plane.open_wires() if not wire.busy]
        if not idle:
            return False
        wanted = {host for number in self._queues for host in self._routing.replica_sets[number]}
        return any(wire.host not in wanted for wire in idle)

    def _enqueue(self, segment: Segment[Rows], *, first: bool = False) -> None:
        queue = self._queues.setdefault(segment.work.replica_set, deque())
        if first:
            queue.appendleft(segment)
        else:
            queue.append(segment)

    def _turn(self) -> None:
        """Send what there is room for, then take what has come."""
        now_s = time.monotonic()
        while self._waiting and self._waiting[0][0] <= now_s:
            work = heapq.heappop(self._waiting)[2]
            self._enqueue(Segment(work, 0, len(work.frames)))
        self._paced = False
        for replica_set in list(self._queues):
            self._send(replica_set)
            if self._paced:
                break
        self._receive(TICK_S)
        until_s = time.monotonic() + PACED_S
        while self._paced and self._busy() and time.monotonic() < until_s:
            self._receive(PACED_S)
        if now_s - self._ticked_at >= TICK_S:
            self._ticked_at = now_s
            self._check_times(now_s)
            self._callbacks.tick()

    def _send(self, replica_set: int) -> None:
        """Send of one replica set's queue what its wires have room for.

        While a rate limit holds rows up they go out block by block, and in between answers are
        taken when they come: no answer waits for the leave of rows that are sent later.
        """
        queue = self._queues[replica_set]
        while queue:
            leave = self._callbacks.leave()
            more = not self._paced and self._requests_left(leave) > 0
            wire = self._choose(replica_set, queue[0].work.suspect) if more else None
            if wire is None:
                # Last in line: the next time others may have what becomes free.
                self._queues[replica_set] = self._queues.pop(replica_set)
                return
            segment = queue[0] = self._as_sent(queue[0], leave)
            begin = segment.first
            frames, window = segment.work.frames, wire.window
            while segment.first < segment.last:
                room = min(window.room(), self._requests_left(leave))
                if not room:
                    break
                last = min(segment.first + room, segment.last)
                count = segment.work.fit(segment.first, last, leave.rows)
                last = segment.first + count
                size = frames.bytes_between(segment.first, last)
                if size > window.bytes_room:
                    count = frames.fit(segment.first, last, window.bytes_room)
                    last = segment.first + count
                    size = frames.bytes_between(segment.first, last)
                now_s = self._throttle(segment.work.rows_between(segment.first, last))
                streams = window.sent(segment.work, segment.first, count, size, now_s)
                frames.set_streams(segment.first, last, streams)
                self._sent(wire, segment.work, segment.first, streams)
                segment.first = last
                if self._paced:
                    break
            if segment.first == segment.last:
                queue.popleft()
            data = frames.buffer.data[
                int(frames.offsets[begin]) : int(frames.offsets[segment.first])
            ]
            with self._caring_for(wire):
                wire.put(data)
        del self._queues[replica_set]

    def _requests_left(self, leave: Leave) -> int:
        """How many requests the job's limit on those without an answer leaves to send now.

        As with a window, none until half of them or a whole block is free.
        """
        if leave.requests == BOUNDLESS:
            return BOUNDLESS
        free = leave.requests - sum(wire.window.requests for wire in self._plane.open_wires())
        return free if free >= min(BLOCK_REQUESTS, max(leave.requests // 2, 1)) else 0

    def _throttle(self, rows: int) -> float:
        """Wait for leave to send; the time when it was given."""
        before_s = time.monotonic()
        self._callbacks.throttle(rows)
        now_s = time.monotonic()
        self._paced = now_s - before_s > PACED_S
        return now_s

    def _choose(self, replica_set: int, suspect: Suspect | None) -> Wire[Work[Rows]] | None:
        """The replica with room and the fewest unanswered requests, the local data centre first.
        What is suspect goes to those first that have not failed it.

        Of equals, the one that was left alone for longest: a load too slow to fill any window
        goes to all of them. None when no replica has room now.
        """
        hosts = self._routing.replica_sets[replica_set]
        failed = suspect.hosts if suspect is not None else frozenset[object]()
        best: Wire[Work[Rows]] | None = None
        reachable = False
        nearest = ""
        for host in hosts:
            if reachable and host.datacenter != nearest:
                break
            wire = self._wire(host)
            if wire is None:
                continue
            reachable, nearest = True, host.datacenter
            if wire.asked_at_s is not None or not wire.window.room():
                continue
            if best is None or (wire.host in failed, _load(wire)) < (
                best.host in failed,
                _load(best),
            ):
                best = wire
        if reachable:
            self._stranded.pop(replica_set, None)
            return best
        now_s = time.monotonic()
        stranded_s = now_s - self._stranded.setdefault(replica_set, now_s)
        refused = self._plane.refused(hosts)
        if refused and stranded_s > (REFUSED_S if self.has_fallback else NO_REPLICA_S):
            raise WiresRefused(self._plane.why_absent(hosts))
        if stranded_s > NO_REPLICA_S:
            raise WriteFailed(
                f"no replica took {self.item} for {NO_REPLICA_S:.0f} s: "
                f"{self._plane.why_absent(hosts)}"
            )
        return None

    def _wire(self, host: Host) -> Wire[Work[Rows]] | None:
        wire = self._plane.wire(host)
        if wire is not None and wire.window.stats is not self._window_stats:
            self._borrow(wire)
        return wire

    def _borrow(self, wire: Wire[Work[Rows]]) -> None:
        """A wire that this unit has not used yet."""
        wire.window.note_in(self._window_stats)

    def _receive(self, pause_s: float) -> None:
        """Wait for something to happen on the wires, so long at most, and take it."""
        open_wires = self._plane.open_wires()
        wires = [wire for wire in open_wires if wire.busy or wire.probed_at_s is not None]
        if self._waiting:
            pause_s = min(pause_s, max(self._waiting[0][0] - time.monotonic(), 0.0))
        if self._queues and not wires:
            pause_s = min(pause_s, OPENING_POLL_S)
        readable, writable = wait(wires, pause_s)
        if readable and all(wire.window.requests > BLOCK_REQUESTS for wire in wires):
            time.sleep(GATHER_S)
        looked_at_s, self._looked_at_s = self._looked_at_s, time.monotonic()
        for wire in writable:
            with self._caring_for(wire):
                wire.push()
        for wire in readable:
            if not wire.closed:
                with self._caring_for(wire):
                    self._take(wire, looked_at_s)
        failed, self._failed = self._failed, {}
        for (_, judged), refused in failed.items():
            work = refused.work._replace(suspect=refused.suspect or refused.work.suspect)
            self._again(work, np.array(refused.indexes), refused.reason, judged=judged)

    @contextmanager
    def _caring_for(self, wire: Wire[Work[Rows]]) -> Iterator[None]:
        """What ends the wire does not end the unit."""
        try:
            yield
        except WireError as error:
            self._lost(wire, str(error))
        except FrameError as error:
            self._lost(wire, f"{wire.host.address}: {error}")

    def _take_error(
        self, wire: Wire[Work[Rows]], reply: Reply, now_s: float, looked_at_s: float
    ) -> None:
        """An ERROR in answer to a frame.

        It is understood before the window hears of it: of a wire whose answers make no sense
        all rows without an answer that does are sent again.
        """
        error = read_error(reply.body)
        work, index = wire.window.answered_one(reply.stream, now_s, looked_at_s)
        match classify_code(error.code, error.message):
            case Verdict.FATAL:
                raise ClusterError(f"the cluster {self.refusal}: {error.message}")
            case Verdict.ROW:
                self._refused(work, index, error.message)
            case Verdict.RETRY:
                self._erred(wire.host, work, index, error)
        if error.code == ErrorCode.UNPREPARED:
            self._prepare(wire)
        elif error.code in _OVERLOAD_CODES:
            wire.window.overloaded(now_s)

    def _prepare(self, wire: Wire[Work[Rows]]) -> None:
        """The server forgot the statement (a schema change, a restart): tell it again, once."""
        if wire.asked_at_s is None:
            wire.ask(Opcode.PREPARE, prepare_body(self._target.prepared.query_string))

    def _prepared(self, wire: Wire[Work[Rows]], reply: Reply) -> None:
        wire.asked_at_s = None
        if reply.opcode == Opcode.ERROR:
            error = read_error(reply.body)
            if classify_code(error.code, error.message) is Verdict.RETRY:
                raise WireError(f"{wire.host.address}: {error.name}: {error.message}")
            raise ClusterError(f"the cluster {self.refusal}: {error.message}")
        if read_prepared_id(reply.body) != self._target.prepared.query_id:
            raise FrameError("the server gave the statement another id")

    def _control(self, wire: Wire[Work[Rows]], reply: Reply) -> bool:
        """Whether the answer is of no row: it is dealt with then."""
        if wire.take_probe(reply):
            return True
        if reply.stream == CONTROL_STREAM:
            self._prepared(wire, reply)
        # Below 0 are events, of which this connection asked for none.
        return reply.stream == CONTROL_STREAM or reply.stream < 0

    def _lost(self, wire: Wire[Work[Rows]], reason: str) -> None:
        """The connection is gone: what to do about its unanswered rows is the user's."""
        returned = wire.window.lost()
        self._plane.drop(wire.host, reason)
        for work, indexes in returned:
            self._unanswered(work, indexes, reason)

    def _again(
        self, work: Work[Rows], indexes: NDArray[np.int64], reason: str, *, judged: bool = False
    ) -> None:
        """Send some of a work's frames again after a pause, or give the unit back.

        `judged`: how often they may be tried is not counted here, see `blame`.
        """
        if not judged and work.tries >= self._bounds.retries_max:
            raise WriteFailed(
                f"{self.request} failed {work.tries + 1} times, the last time with: {reason}"
            )
        again = self._as_repeated(work.again(indexes))
        tries = again.suspect.times if judged and again.suspect is not None else again.tries
        due = time.monotonic() + backoff_s(tries, self._jitter)
        heapq.heappush(self._waiting, (due, next(self._numbers), again))

    def _still_tells(self, wire: Wire[Work[Rows]], now_s: float) -> bool:
        """Whether a late wire may have answers that were not taken yet."""
        return False

    def _check_times(self, now_s: float) -> None:
        """A wire whose oldest request has no answer in time is taken for dead.

        Only after what has come was taken: the client may have been away for longer than that.
        """
        timeout_s = self._bounds.request_timeout_s
        for wire in self._plane.open_wires():
            since_s = wire.waits_since_s()
            late = since_s is not None and now_s - since_s > timeout_s
            if late and not self._still_tells(wire, now_s):
                self._lost(wire, f"{wire.host.address}: no answer for {timeout_s:g} s")
        if self.repeatable:
            for wire in self._plane.open_wires():
                self._check_silence(wire, now_s)

    def _check_silence(self, wire: Wire[Work[Rows]], now_s: float) -> None:
        """Ask wires for signs of life, and take one that gives none for dead: see `silence`."""
        since_s = wire.silent_since_s()
        if since_s is None or now_s - since_s <= liveness.SILENT_S:
            return
        found = liveness.judge(wire, since_s, self._stand_ins(wire), now_s)
        for asked in found.ask:
            with self._caring_for(asked):
                asked.probe()
        if found.dead:
            self._lost(wire, f"{wire.host.address}: no sign of life for {now_s - since_s:.1f} s")

    def _stand_ins(self, wire: Wire[Work[Rows]]) -> list[set[Wire[Work[Rows]]]]:
        """Of each replica set whose rows wait on a wire, the other wires that are open."""
        others = {other.host: other for other in self._plane.open_wires() if other is not wire}
        numbers = {work.replica_set for work in wire.window.works()}
        sets = (self._routing.replica_sets[number] for number in numbers)
        return [{others[host] for host in hosts if host in others} for hosts in sets]


def _load(wire: Wire[Work[Rows]]) -> tuple[bool, int, float]:
    """Whether it is in doubt, what it has to do, and since when it was given nothing more."""
    return wire.probed_at_s is not None, wire.window.requests, wire.window.sent_at_s
