"""Send frames to replicas: queues, connections, windows, and the handling of errors.

The part of the data plane that writes and reads share. A subclass puts frames into the queue of
their replica set and calls `_turn`, which sends what the windows have room for and takes what has
come. The subclass decides what a response means: see `_take`. This class finds the frame an error
is about and handles the error: it concerns the row, the moment (the frame is sent again after a
pause), the statement (prepared again on that connection) or the job.
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
    Reply,
    ServerError,
    execute_values,
    read_error,
)
from ringhaul.dataplane import liveness
from ringhaul.dataplane.base import FAILED_ALONE, RequestFailed, Target, exhausted_error
from ringhaul.dataplane.blame import Blame, Cause, Controlled, Ruling, Suspect, cause_of_code
from ringhaul.dataplane.choice import ReplicaChoice
from ringhaul.dataplane.connection import CONTROL_STREAM, NodeConnection, WireError, wait
from ringhaul.dataplane.control import Control
from ringhaul.dataplane.pacing import TICK_S, Leave
from ringhaul.dataplane.preparation import prepare, take_prepared
from ringhaul.dataplane.retry import OVERLOAD_CODES, Verdict, backoff_s, classify_code
from ringhaul.dataplane.routing import Routing
from ringhaul.dataplane.window import BLOCK_REQUESTS, WindowStats
from ringhaul.dataplane.work import Bounds, Failed, Hooks, Rows, Segment, Work
from ringhaul.errors import ClusterError

#: How often to look for a connection while none is open.
OPENING_POLL_S = 0.02
#: While every connection has more than a block of requests pending, responses gather for this long
#: after the first has come: a turn costs as much for one as for a hundred.
GATHER_S = 0.002
#: A throttle that held rows up for longer is limiting (see `_send`); then receive for this long.
PACED_S = 0.05


class Dispatcher(ABC, Generic[Rows]):
    """Sends one unit's frames over the connections of the worker process; see the module."""

    #: Words of messages: what the cluster refuses, what no replica accepted, what failed.
    refusal = "refuses all writes"
    item = "rows"
    request = "a write"
    #: Whether frames may be sent twice. If not, a connection gets its full timeout: for each
    #: unanswered row it would be unknown whether it was done.
    repeatable = True
    #: Whether frames are writes to rows, see `control`.
    controllable = True
    has_fallback = False  #: whether the driver can do the work instead

    def __init__(
        self, target: Target, bounds: Bounds, hooks: Hooks, window_stats: WindowStats
    ) -> None:
        self._target, self._bounds, self._callbacks = target, bounds, hooks
        self._plane = target.plane
        self._routing = Routing(target.session, target.keyspace)
        self._window_stats = window_stats
        self._queues: dict[int, deque[Segment[Rows]]] = {}
        self._waiting: list[tuple[float, int, Work[Rows]]] = []  # heap by the time of the next try
        self._numbers = itertools.count()  # breaks ties in the heap
        self._jitter = random.Random()
        #: By id of the work, and whether its frames are suspect; emptied by each `_receive`.
        self._failed: dict[tuple[int, bool], Failed[Rows]] = {}
        self._blame = Blame(bounds.retries_max)
        self._control_write = Control(target.session, target.prepared, bounds.consistency)
        self._choice = ReplicaChoice(
            self._plane, self._routing, self._wire, item=self.item, has_fallback=self.has_fallback
        )
        self._paced = False
        self._plane.check()
        self._ticked_at = self._looked_at_s = time.monotonic()

    def close(self) -> None:
        """Close the connections whose late responses would reach the next unit."""
        self._plane.forget_busy()

    @abstractmethod
    def _take(self, connection: NodeConnection[Work[Rows]], looked_at_s: float) -> None:
        """Take the responses on a connection; they came after `looked_at_s`.

        Pass errors to `_take_error`, and responses that are not about a row to `_control`.
        """

    @abstractmethod
    def _refused(self, work: Work[Rows], index: int, reason: str) -> None:
        """Reject a row that the server will never accept."""

    def _as_sent(self, segment: Segment[Rows], leave: Leave) -> Segment[Rows]:
        """Return the head of a queue in the frames to send now."""
        return segment

    def _as_repeated(self, again: Work[Rows]) -> Work[Rows]:
        """Return frames that failed in the form in which to send them again."""
        return again

    def _sent(
        self,
        connection: NodeConnection[Work[Rows]],
        work: Work[Rows],
        first: int,
        streams: NDArray[np.int64],
    ) -> None:
        """Note the stream ids of the frames from `first` on."""

    @abstractmethod
    def _take_apart(self, work: Work[Rows], index: int) -> bool:
        """Send rows that share a frame one by one instead; return whether there are several."""

    def _place_of(self, work: Work[Rows], index: int) -> str:
        """Return where a row stands in the input, for messages; empty if unknown."""
        return ""

    def _erred(self, host: Host, work: Work[Rows], index: int, error: ServerError) -> None:
        """Handle an error about the moment, or of unclear cause: see `blame`."""
        reason = f"{error.name}: {with_reasons(error.message)}"
        suspect, cause = None, cause_of_code(error.code)
        if cause is not Cause.MOMENT:
            suspect = self._suspect(host, work, index)
            if suspect.times >= self._blame.shared_tries[cause] and self._take_apart(work, index):
                return
            if self._convicted(work, index, suspect, cause, reason):
                self._refused(work, index, f"{reason}; {FAILED_ALONE} {suspect.times} times")
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
        """Return whether a row that failed again is to blame. Raises if the cluster is."""
        if work.cuts is not None:
            return False

        def control() -> Controlled:
            self._callbacks.tick()
            if not self.controllable:
                return Controlled(None, time.monotonic())
            begin, end = work.frames.offsets[index], work.frames.offsets[index + 1]
            return self._control_write.take(execute_values(work.frames.buffer[begin:end].tobytes()))

        if cause is Cause.LATE:
            tries_left = self._bounds.retries_max - work.tries
            return self._blame.rule_at_last(suspect, tries_left, work.replica_set, control)
        ruling = self._blame.rule(suspect, work.replica_set, control)
        if ruling in (Ruling.CLUSTER, Ruling.OPEN):
            raise exhausted_error(
                ruling, self.request, suspect.times, reason, self._place_of(work, index)
            )
        return ruling is Ruling.ROW

    def _watch(
        self, connection: NodeConnection[Work[Rows]], streams: NDArray[np.int16]
    ) -> list[int]:
        """Return the replica sets of successful requests, if some request is suspect.

        Call it before the window takes the responses, and pass the result to `_took` afterwards.
        """
        if not self._blame.watching:
            return []
        return list({work.replica_set for work in connection.window.works_of(streams)})

    def _took(
        self, connection: NodeConnection[Work[Rows]], replica_sets: list[int], now_s: float
    ) -> None:
        self._blame.taken_s = now_s
        for number in replica_sets:
            self._blame.took(connection.host, number, now_s)

    def _unanswered(self, work: Work[Rows], indexes: NDArray[np.int64], reason: str) -> None:
        """Handle requests that were unanswered when the connection ended.

        Sending a row twice is harmless, as it has its own timestamp; see `_as_repeated`.
        """
        self._again(work, indexes, reason)

    def _pending(self) -> bool:
        """Return whether anything is still to be sent or unanswered."""
        return bool(self._queues or self._waiting or self._busy())

    def _busy(self) -> bool:
        """Return whether some connection has unanswered rows."""
        return any(connection.busy for connection in self._plane.open_connections())

    def _starving(self) -> bool:
        """Return whether some connection is idle and no queued work is for it."""
        idle = [connection for connection in self._plane.open_connections() if not connection.busy]
        if not idle:
            return False
        wanted = {host for number in self._queues for host in self._routing.replica_sets[number]}
        return any(connection.host not in wanted for connection in idle)

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
        """Send as much of one replica set's queue as its connections have room for.

        While a rate limit holds rows up, they go out block by block and responses are taken in
        between: no response waits for the permission to send later rows.
        """
        queue = self._queues[replica_set]
        while queue:
            leave = self._callbacks.leave()
            more = not self._paced and self._choice.requests_left(leave) > 0
            suspect = queue[0].work.suspect
            connection = self._choice.choose(replica_set, suspect) if more else None
            if connection is None:
                # Move to the end of the line, so that other queues get what becomes free.
                self._queues[replica_set] = self._queues.pop(replica_set)
                return
            segment = queue[0] = self._as_sent(queue[0], leave)
            begin = segment.first
            frames, window = segment.work.frames, connection.window
            while segment.first < segment.last:
                room = min(window.room(), self._choice.requests_left(leave))
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
                self._sent(connection, segment.work, segment.first, streams)
                segment.first = last
                if self._paced:
                    break
            if segment.first == segment.last:
                queue.popleft()
            data = frames.buffer.data[
                int(frames.offsets[begin]) : int(frames.offsets[segment.first])
            ]
            with self._caring_for(connection):
                connection.put(data)
        del self._queues[replica_set]

    def _throttle(self, rows: int) -> float:
        """Wait for permission to send; return the time when it was given."""
        before_s = time.monotonic()
        self._callbacks.throttle(rows)
        now_s = time.monotonic()
        self._paced = now_s - before_s > PACED_S
        return now_s

    def _wire(self, host: Host) -> NodeConnection[Work[Rows]] | None:
        """Return the connection to a host, ready for this unit; None while it has none."""
        connection = self._plane.connection(host)
        if connection is not None and connection.window.stats is not self._window_stats:
            self._borrow(connection)
        return connection

    def _borrow(self, connection: NodeConnection[Work[Rows]]) -> None:
        """Start using a connection for this unit."""
        connection.window.bound(*self._window_bounds())
        connection.window.note_in(self._window_stats)

    def _window_bounds(self) -> tuple[int, int]:
        """Return how many requests may be unanswered on a connection, and if the node is far."""
        return self._plane.requests_max, self._plane.far_max

    def _receive(self, pause_s: float) -> None:
        """Wait up to `pause_s` for events on the connections, and handle them."""
        open_connections = self._plane.open_connections()
        connections = [
            connection
            for connection in open_connections
            if connection.busy or connection.probed_at_s is not None
        ]
        if self._waiting:
            pause_s = min(pause_s, max(self._waiting[0][0] - time.monotonic(), 0.0))
        if self._queues and not connections:
            pause_s = min(pause_s, OPENING_POLL_S)
        readable, writable = wait(connections, pause_s)
        if readable and all(
            connection.window.requests > BLOCK_REQUESTS for connection in connections
        ):
            time.sleep(GATHER_S)
        looked_at_s, self._looked_at_s = self._looked_at_s, time.monotonic()
        for connection in writable:
            with self._caring_for(connection):
                connection.push()
        for connection in readable:
            if not connection.closed:
                with self._caring_for(connection):
                    self._take(connection, looked_at_s)
        failed, self._failed = self._failed, {}
        for (_, judged), refused in failed.items():
            work = refused.work._replace(suspect=refused.suspect or refused.work.suspect)
            self._again(work, np.array(refused.indexes), refused.reason, judged=judged)

    @contextmanager
    def _caring_for(self, connection: NodeConnection[Work[Rows]]) -> Iterator[None]:
        """Handle errors that end the connection but not the unit."""
        try:
            yield
        except WireError as error:
            self._lost(connection, str(error))
        except FrameError as error:
            self._lost(connection, f"{connection.host.address}: {error}")

    def _take_error(
        self, connection: NodeConnection[Work[Rows]], reply: Reply, now_s: float, looked_at_s: float
    ) -> None:
        """Handle an ERROR response to a frame.

        It is parsed before the window counts it: if the responses of a connection make no sense,
        all its unanswered rows are sent again.
        """
        error = read_error(reply.body)
        work, index = connection.window.answered_one(reply.stream, now_s, looked_at_s)
        match classify_code(error.code, error.message):
            case Verdict.FATAL:
                raise ClusterError(f"the cluster {self.refusal}: {error.message}")
            case Verdict.ROW:
                self._refused(work, index, error.message)
            case Verdict.RETRY:
                self._erred(connection.host, work, index, error)
        if error.code == ErrorCode.UNPREPARED:
            prepare(connection, self._target.prepared)
        elif error.code in OVERLOAD_CODES:
            connection.window.overloaded(now_s)

    def _control(self, connection: NodeConnection[Work[Rows]], reply: Reply) -> bool:
        """Handle a response unless it is about a row; return whether it was handled."""
        if connection.take_probe(reply):
            return True
        if reply.stream == CONTROL_STREAM:
            take_prepared(connection, reply, self._target.prepared, self.refusal)
        # Negative ids are events, which this connection did not subscribe to.
        return reply.stream == CONTROL_STREAM or reply.stream < 0

    def _lost(self, connection: NodeConnection[Work[Rows]], reason: str) -> None:
        """Drop a connection that has ended; the subclass handles its unanswered rows."""
        returned = connection.window.lost()
        self._plane.drop(connection.host, reason)
        for work, indexes in returned:
            self._unanswered(work, indexes, reason)

    def _again(
        self, work: Work[Rows], indexes: NDArray[np.int64], reason: str, *, judged: bool = False
    ) -> None:
        """Send some of a work's frames again after a pause, or give the unit back.

        `judged`: the number of tries is bounded by `blame`, not here.
        """
        if not judged and work.tries >= self._bounds.retries_max:
            raise RequestFailed(
                f"{self.request} failed {work.tries + 1} times, the last time with: {reason}"
            )
        again = self._as_repeated(work.again(indexes))
        tries = again.suspect.times if judged and again.suspect is not None else again.tries
        due = time.monotonic() + backoff_s(tries, self._jitter)
        heapq.heappush(self._waiting, (due, next(self._numbers), again))

    def _still_tells(self, connection: NodeConnection[Work[Rows]], now_s: float) -> bool:
        """Return whether a late connection may have responses that were not taken yet."""
        return False

    def _check_times(self, now_s: float) -> None:
        """Drop connections whose oldest request was not answered in time.

        Only after taking what has come: the client itself may have been busy for longer than that.
        """
        self._plane.sound(now_s)
        timeout_s = self._bounds.request_timeout_s
        for connection in self._plane.open_connections():
            since_s = connection.waits_since_s()
            late = since_s is not None and now_s - since_s > timeout_s
            if late and not self._still_tells(connection, now_s):
                self._lost(connection, f"{connection.host.address}: no answer for {timeout_s:g} s")
        if self.repeatable:
            for connection in self._plane.open_connections():
                self._check_silence(connection, now_s)

    def _check_silence(self, connection: NodeConnection[Work[Rows]], now_s: float) -> None:
        """Probe silent connections, and drop those found dead: see `liveness`."""
        since_s = connection.silent_since_s()
        if since_s is None or now_s - since_s <= liveness.SILENT_S:
            return
        stand_ins = self._choice.stand_ins(connection)
        found = liveness.judge(connection, since_s, stand_ins, now_s)
        for silent in found.probe:
            with self._caring_for(silent):
                silent.probe()
        if found.dead:
            reason = f"{connection.host.address}: no sign of life for {now_s - since_s:.1f} s"
            self._lost(connection, reason)
