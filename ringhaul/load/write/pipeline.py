"""`pipeline`: single statements at the server's own speed.

The rows of a block become EXECUTE frames in one buffer; whole runs of them are handed to the
replica's socket at once, and the answers are counted column-wise. On the server single statements
cost no more than batches; what made them slow was the cost of each in the client.

The order of things: `write` queues a block's frames by replica set and returns when they are on
their way, `flush` when every one was answered. In between a loop sends what the windows have room
for and reads what has come. An answer that is not VOID finds its row by its stream id.
"""

from __future__ import annotations

import heapq
import itertools
import random
import select
import time
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from cassandra.pool import Host
from numpy.typing import NDArray

from ringhaul.cql.frames import (
    ErrorCode,
    FrameError,
    Frames,
    Opcode,
    Reply,
    execute_frames,
    frame,
    prepare_body,
    read_error,
    read_prepared_id,
)
from ringhaul.errors import ClusterError
from ringhaul.load.rows import EncodedRows
from ringhaul.load.write.base import (
    TICK_S,
    Target,
    WriteFailed,
    WriteOptions,
    WriterHooks,
    WriteStats,
)
from ringhaul.load.write.retry import Verdict, backoff_s, classify_code
from ringhaul.load.write.routing import Routing
from ringhaul.load.write.window import WindowStats
from ringhaul.load.write.wire import CONTROL_STREAM, Wire, WireError

#: How long rows wait for any of their replicas before the unit is given back.
NO_REPLICA_S = 30.0
#: Answers that say the server has too much to do: the window shrinks.
_OVERLOAD_CODES = (ErrorCode.OVERLOADED, ErrorCode.WRITE_TIMEOUT)


class _Work(NamedTuple):
    """Frames of rows that share a replica set (or are sent again)."""

    rows: EncodedRows
    frames: Frames
    order: NDArray[np.int64]  #: row of `rows` that each frame writes
    replica_set: int
    tries: int


@dataclass
class _Segment:
    """Frames first..last-1 of some work that are still to be sent."""

    work: _Work
    first: int
    last: int


class PipelineWriter:
    """See the module; the interface is `base.Writer`."""

    def __init__(self, target: Target, options: WriteOptions, hooks: WriterHooks) -> None:
        self.stats = WriteStats()
        self._target, self._options, self._hooks = target, options, hooks
        self._plane = target.plane
        self._routing = Routing(target.session, target.keyspace)
        self._window_stats = WindowStats(latencies=self.stats.latencies)
        self._queues: dict[int, deque[_Segment]] = {}
        self._waiting: list[tuple[float, int, _Work]] = []  # heap by time to try again
        self._numbers = itertools.count()  # breaks ties in the heap
        self._jitter = random.Random()
        self._ticked_at = self._served_at = time.monotonic()
        self._plane.check()
        for wire in self._plane.open_wires():
            wire.window.stats = self._window_stats

    def write(self, rows: EncodedRows) -> None:
        sets, _ = self._routing.assign(rows.keys)
        joined = rows.joined()
        counts = np.bincount(sets)
        if np.count_nonzero(counts) == 1:
            order = np.arange(len(sets))
        else:
            order = np.argsort(sets, kind="stable")
            joined = joined.take(order)
        frames = execute_frames(
            joined,
            self._target.prepared.query_id,
            self._options.consistency,
            len(rows.columns),
        )
        first = 0
        for replica_set in np.flatnonzero(counts).tolist():
            last = first + int(counts[replica_set])
            work = _Work(rows, frames, order, replica_set, 0)
            self._enqueue(_Segment(work, first, last))
            first = last
        while self._queues:
            self._turn()

    def flush(self) -> None:
        while self._queues or self._waiting or self._unanswered():
            self._turn()
        self.stats.window = self._window_stats

    def close(self) -> None:
        """Wires with requests of this unit unanswered would answer them to the next: drop them."""
        for wire in self._plane.open_wires():
            if wire.window.requests:
                self._plane.drop(wire.host, "the unit was given up")

    def _unanswered(self) -> int:
        return sum(wire.window.requests for wire in self._plane.open_wires())

    def _enqueue(self, segment: _Segment) -> None:
        self._queues.setdefault(segment.work.replica_set, deque()).append(segment)

    def _turn(self) -> None:
        """Send what there is room for, then take what has come."""
        now_s = time.monotonic()
        if now_s - self._ticked_at >= TICK_S:
            self._ticked_at = now_s
            self._check_times(now_s)
            self._hooks.tick()
        while self._waiting and self._waiting[0][0] <= now_s:
            work = heapq.heappop(self._waiting)[2]
            self._enqueue(_Segment(work, 0, len(work.frames)))
        for replica_set in list(self._queues):
            self._send(replica_set)
        self._receive()

    def _send(self, replica_set: int) -> None:
        """Send of one replica set's queue what its wires have room for."""
        queue = self._queues[replica_set]
        while queue:
            wire = self._choose(replica_set)
            if wire is None:
                return
            segment = queue[0]
            begin = segment.first
            frames, window = segment.work.frames, wire.window
            while segment.first < segment.last and (room := window.room()):
                count = min(room, segment.last - segment.first)
                self._hooks.throttle(count)
                last = segment.first + count
                size = frames.bytes_between(segment.first, last)
                streams = window.sent(segment.work, segment.first, count, size, time.monotonic())
                frames.set_streams(segment.first, last, streams)
                segment.first = last
            if segment.first == segment.last:
                queue.popleft()
            data = frames.buffer.data[
                int(frames.offsets[begin]) : int(frames.offsets[segment.first])
            ]
            try:
                wire.put(data)
            except WireError as error:
                self._lost(wire, str(error))
        del self._queues[replica_set]

    def _choose(self, replica_set: int) -> Wire[_Work] | None:
        """The replica with room and the fewest unanswered requests, the local data centre first.

        None when no replica has room now.
        """
        hosts = self._routing.replica_sets[replica_set]
        best: Wire[_Work] | None = None
        reachable = False
        nearest = ""
        for host in hosts:
            if reachable and host.datacenter != nearest:
                break
            wire = self._wire(host)
            if wire is None:
                continue
            reachable, nearest = True, host.datacenter
            if wire.preparing is None and wire.window.room():
                if best is None or wire.window.requests < best.window.requests:
                    best = wire
        if reachable:
            self._served_at = time.monotonic()
        elif time.monotonic() - self._served_at > NO_REPLICA_S:
            raise WriteFailed(
                f"no replica took rows for {NO_REPLICA_S:.0f} s: {self._plane.why_absent(hosts)}"
            )
        return best

    def _wire(self, host: Host) -> Wire[_Work] | None:
        wire = self._plane.wire(host)
        if wire is not None:
            wire.window.stats = self._window_stats
        return wire

    def _receive(self) -> None:
        """Wait for something to happen on the wires, and take it."""
        wires = [w for w in self._plane.open_wires() if w.window.requests or w.preparing]
        writers = [wire for wire in wires if wire.wants_write]
        pause_s = TICK_S
        if self._waiting:
            pause_s = min(pause_s, max(self._waiting[0][0] - time.monotonic(), 0.0))
        if self._queues and not wires:
            pause_s = min(pause_s, 0.05)  # no replica yet: ask the plane again soon
        readable, writable, _ = select.select(wires, writers, [], pause_s)
        for wire in writable:
            try:
                wire.push()
            except WireError as error:
                self._lost(wire, str(error))
        for wire in readable:
            try:
                self._take(wire)
            except (WireError, FrameError) as error:
                self._lost(wire, str(error))

    def _take(self, wire: Wire[_Work]) -> None:
        parsed = wire.pull()
        now_s = time.monotonic()
        wire.window.answered(parsed.voids, now_s)
        self.stats.written += len(parsed.voids)
        for reply in parsed.others:
            self._take_other(wire, reply, now_s)

    def _take_other(self, wire: Wire[_Work], reply: Reply, now_s: float) -> None:
        """An answer that is not a plain VOID."""
        if reply.stream < 0:
            return  # an event; this connection registered for none
        if reply.stream == CONTROL_STREAM:
            self._prepared(wire, reply)
            return
        work, index = wire.window.answered_one(reply.stream, now_s)
        if reply.is_void:
            self.stats.written += 1
            return
        if reply.opcode != Opcode.ERROR:
            raise FrameError(f"an INSERT was answered by message {reply.opcode:#04x}")
        error = read_error(reply.body)
        if error.code == ErrorCode.UNPREPARED:
            self._prepare(wire)
        elif error.code in _OVERLOAD_CODES:
            wire.window.overloaded(now_s)
        match classify_code(error.code, error.message):
            case Verdict.FATAL:
                raise ClusterError(f"the cluster takes no rows: {error.message}")
            case Verdict.ROW:
                self._hooks.on_reject(work.rows, int(work.order[index]), error.message)
            case Verdict.RETRY:
                reason = f"{error.name}: {error.message}"
                self._again(work, np.array([index]), reason)

    def _prepare(self, wire: Wire[_Work]) -> None:
        """The server forgot the statement (a schema change, a restart): tell it again, once."""
        if wire.preparing is None:
            wire.preparing = frame(
                Opcode.PREPARE, prepare_body(self._target.prepared.query_string), CONTROL_STREAM
            )
            wire.put(memoryview(wire.preparing))

    def _prepared(self, wire: Wire[_Work], reply: Reply) -> None:
        wire.preparing = None
        if reply.opcode == Opcode.ERROR:
            raise ClusterError(f"the cluster takes no rows: {read_error(reply.body).message}")
        if read_prepared_id(reply.body) != self._target.prepared.query_id:
            raise FrameError("the server gave the statement another id")

    def _lost(self, wire: Wire[_Work], reason: str) -> None:
        """The connection is gone: its unanswered rows go elsewhere.

        Sending a row twice is harmless: it carries its own fixed timestamp.
        """
        returned = wire.window.lost()
        self._plane.drop(wire.host, reason)
        for work, indexes in returned:
            self._again(work, indexes, reason)

    def _again(self, work: _Work, indexes: NDArray[np.int64], reason: str) -> None:
        """Send some of a work's frames again after a pause, or give the unit back."""
        if work.tries >= self._options.retries_max:
            raise WriteFailed(
                f"a write failed {work.tries + 1} times, the last time with: {reason}"
            )
        self.stats.retries += len(indexes)
        again = _Work(
            work.rows,
            work.frames.take(indexes),
            work.order[indexes],
            work.replica_set,
            work.tries + 1,
        )
        due = time.monotonic() + backoff_s(again.tries, self._jitter)
        heapq.heappush(self._waiting, (due, next(self._numbers), again))

    def _check_times(self, now_s: float) -> None:
        """A wire whose oldest request has no answer in time is taken for dead."""
        for wire in self._plane.open_wires():
            oldest = wire.window.oldest_sent_at_s()
            if oldest is not None and now_s - oldest > self._options.request_timeout_s:
                timeout_s = self._options.request_timeout_s
                self._lost(wire, f"no answer for {timeout_s:.0f} s")
