"""Run one prepared statement over many rows of values, at the data plane's speed.

The rows become EXECUTE frames column-wise and go to their replicas like the rows of a load; see
`dataplane/dispatcher.py`. A compiled pass over the received bytes finds the responses
(`replies.py`); an array indexed by stream id gives their rows. Responses are handed out in batches,
whose sizes determine how many requests may be unanswered (`answers.py`).

If the response to a row has more pages, the next page is requested before anything else. Errors are
handled as in a load, with one more case. A statement that is not idempotent (a counter, an addition
to a list, a condition) is never sent again once the server may have started it: its row is in
doubt.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from cassandra.pool import Host
from numpy.typing import NDArray

from ringhaul.cql.failures import with_reasons
from ringhaul.cql.frames import (
    STREAMS_MAX,
    ErrorCode,
    Opcode,
    Reply,
    ServerError,
    execute_frames,
    next_page_frame,
    parse_replies,
)
from ringhaul.dataplane.base import Target
from ringhaul.dataplane.connection import NodeConnection
from ringhaul.dataplane.dispatcher import Dispatcher
from ringhaul.dataplane.window import WindowStats
from ringhaul.dataplane.work import Segment, Work
from ringhaul.statements.answers import Answers, Gathering
from ringhaul.statements.conditions import Unmet
from ringhaul.statements.idempotence import Effect
from ringhaul.statements.normalise import restated
from ringhaul.statements.options import ReadOptions, RequestHooks, RequestStats
from ringhaul.statements.replies import MORE, ROWS, VOID, Found, Ints, paging_state, scan

#: Most rows that wait to be sent, unless some connections are idle.
QUEUED_ROWS = 4096
QUEUED_ROWS_MAX = 8 * QUEUED_ROWS
#: Tries after which a row that cannot be read (too many tombstones, a corrupt file) is rejected.
READ_FAILURES_MAX = 3

#: Errors after which the server has certainly not started the request.
_NOT_BEGUN = (ErrorCode.UNPREPARED, ErrorCode.IS_BOOTSTRAPPING)


class Values(NamedTuple):
    """Rows of values for a statement's markers."""

    numbers: Ints  #: row numbers, to which responses refer
    bound: pa.BinaryArray  #: rows as `cells.join_rows` makes them; empty without markers
    keys: pa.BinaryArray | None  #: routing keys; None: any node can coordinate


class Unfinished(NamedTuple):
    """Rows without a complete response: rows never sent (or refused), and rows sent."""

    unsent: Ints
    sent: Ints


class Requests(Dispatcher[None]):
    """Sends the rows of one statement in one unit; see the module."""

    refusal = "does not run the statement"
    item = "requests"
    request = "a request"

    def __init__(
        self,
        target: Target,
        effect: Effect,
        columns: int,
        options: ReadOptions,
        hooks: RequestHooks,
    ) -> None:
        """`columns`: columns of the statement's result; 0 if unknown beforehand."""
        self.stats = RequestStats()
        self._options, self._hooks = options, hooks
        self._effect, self._columns = effect, columns
        self.repeatable = effect.repeatable
        self.controllable = effect.repeatable and not effect.reads and effect.verb != "batch"
        self._numbers_of: WeakKeyDictionary[NodeConnection[Work[None]], Ints] = WeakKeyDictionary()
        self._unmet = Unmet(hooks.on_not_applied)
        self._gathering = Gathering(self.stats, options.requests_max)
        #: Number of a row whose response has more pages -> rows received so far.
        self._rows_so_far: dict[int, int] = {}
        window_stats = WindowStats(latencies=self.stats.latencies)
        self.stats.window = window_stats
        super().__init__(target, options, hooks, window_stats)

    def answers(self, rows: Iterable[Values]) -> Iterator[Answers]:
        """Send all rows; yield their responses as they come.

        `rows` is read one block ahead of sending. Meanwhile the caller may `enqueue` more. Raises
        `RequestFailed` if the cluster fails for now, `ClusterError` if it will never succeed.
        """
        blocks = iter(rows)
        more = True
        while True:
            while more and self._wants_more():
                self._unmet.report()  # before the caller forgets its rows: all may be answered
                block = next(blocks, None)
                more = block is not None
                if block is not None:
                    self.enqueue(block)
            if not self._pending():
                yield from self.gathered()
                if not more and not self._pending():
                    return
                continue
            self._turn()
            if self._gathering.full:
                yield from self.gathered()

    def enqueue(self, rows: Values) -> None:
        """Queue rows; they are sent while `answers` is read."""
        if not len(rows.numbers):
            return
        bound, order = rows.bound, rows.numbers
        if rows.keys is None:
            sets = np.full(len(order), self._routing.anywhere())
        else:
            sets, _ = self._routing.assign(rows.keys)
        counts = np.bincount(sets)
        if np.count_nonzero(counts) > 1:
            by_set = np.argsort(sets, kind="stable")
            bound, order = bound.take(pa.array(by_set)), order[by_set]
        timestamps = None
        if self._options.timestamp_us and self._effect.repeatable and not self._effect.reads:
            timestamps = self._options.timestamp_us + order
        frames = execute_frames(
            bound,
            self._target.prepared.query_id,
            self._options.consistency,
            len(self._target.prepared.column_metadata or ()),
            page_rows=self._options.page_rows,
            skip_metadata=self._columns > 0,
            timestamps=timestamps,
        )
        first = 0
        for replica_set in np.flatnonzero(counts).tolist():
            last = first + int(counts[replica_set])
            self._enqueue(Segment(Work(None, frames, order, replica_set, 0), first, last))
            first = last

    def replica_sets(self, keys: pa.BinaryArray) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return (replica set, token) of each routing key, to group neighbours in requests."""
        return self._routing.assign(keys)

    def gathered(self) -> Iterator[Answers]:
        """Yield responses not yet handed out, if any; also after `RequestFailed`."""
        self._unmet.report()
        return self._gathering.hand_out()

    def unfinished(self) -> Unfinished:
        """Return what is lost if this ends now, and end it: no more requests can be made."""
        none = np.zeros(0, np.int64)
        unsent = [s.work.order[s.first : s.last] for queue in self._queues.values() for s in queue]
        unsent += [work.order for _, _, work in self._waiting]
        busy = [connection for connection in self._plane.open_connections() if connection.busy]
        self._plane.forget_busy()
        sent = [work.order[indexes] for w in busy for work, indexes in w.window.lost()]
        self._queues.clear()
        self._waiting.clear()
        return Unfinished(np.concatenate([none, *unsent]), np.concatenate([none, *sent]))

    def _wants_more(self) -> bool:
        if not self._hooks.takes_more():
            return False
        queued = sum(
            segment.last - segment.first for queue in self._queues.values() for segment in queue
        )
        return queued < QUEUED_ROWS or (queued < QUEUED_ROWS_MAX and self._starving())

    def _borrow(self, connection: NodeConnection[Work[None]]) -> None:
        super()._borrow(connection)
        connection.window.cap(self._gathering.requests_cap())

    def _sent(
        self,
        connection: NodeConnection[Work[None]],
        work: Work[None],
        first: int,
        streams: NDArray[np.int64],
    ) -> None:
        numbers = self._numbers_of.get(connection)
        if numbers is None:
            numbers = self._numbers_of[connection] = np.zeros(STREAMS_MAX, np.int64)
        last = first + len(streams)
        numbers[streams[0] : streams[0] + len(streams)] = work.order[first:last]
        self.stats.request_bytes += work.frames.bytes_between(first, last)

    def _take(self, connection: NodeConnection[Work[None]], looked_at_s: float) -> None:
        data = connection.receive()
        found = scan(data, self._columns)
        connection.keep(data[found.consumed_bytes :])
        now_s = time.monotonic()
        plain = (found.kinds == VOID) | (found.kinds == ROWS)
        if plain.all():
            self._take_plain(connection, data, found, now_s, looked_at_s)
            return
        self._take_plain(connection, data, found.pick(plain), now_s, looked_at_s)
        for i in np.flatnonzero(~plain).tolist():
            if found.kinds[i] == MORE:
                self._take_page(connection, data, found, i, now_s, looked_at_s)
                continue
            begin, end = int(found.frames[i]), int(found.ends[i])
            for reply in parse_replies(data[begin:end]).others:
                if not self._control(connection, reply):
                    self._take_other(connection, reply, now_s, looked_at_s)

    def _take_plain(
        self,
        connection: NodeConnection[Work[None]],
        data: bytes,
        found: Found,
        now_s: float,
        looked_at_s: float,
    ) -> None:
        """Take responses that are complete."""
        count = len(found.streams)
        if not count:
            return
        streams = found.streams.astype(np.int16)
        sets = self._watch(connection, streams)
        connection.window.answered(streams, now_s, looked_at_s)
        self._took(connection, sets, now_s)
        last, numbers = np.ones(count, np.bool_), self._numbers_of[connection][found.streams]
        if self._rows_so_far:
            for number in numbers.tolist():
                self._rows_so_far.pop(number, None)
        self._gathering.keep(data, found, numbers, last)
        connection.window.cap(self._gathering.requests_cap())

    def _take_page(
        self,
        connection: NodeConnection[Work[None]],
        data: bytes,
        found: Found,
        i: int,
        now_s: float,
        looked_at_s: float,
    ) -> None:
        """Take a page before the last; request the next page, unless the caller does."""
        work, index = connection.window.answered_one(int(found.streams[i]), now_s, looked_at_s)
        self._took(connection, [work.replica_set], now_s)
        order = work.order[index : index + 1]
        number = int(order[0])
        last = self._hooks.cut_off(number)
        if not last:
            so_far = self._rows_so_far.get(number, 0)
            self._rows_so_far[number] = so_far + int(found.counts[i])
            state = paging_state(data, int(found.frames[i]))
            begin, end = work.frames.offsets[index], work.frames.offsets[index + 1]
            frames = next_page_frame(work.frames.buffer[begin:end].tobytes(), state)
            page = Work(None, frames, order, work.replica_set, 0)
            self._enqueue(Segment(page, 0, 1), first=True)
            self.stats.pages += 1
        self._gathering.keep(data, found.pick(np.array([i])), order, np.full(1, last))
        if last:
            self.stats.answered -= 1  # the requests that the caller makes instead are counted
        connection.window.cap(self._gathering.requests_cap())

    def _take_other(
        self, connection: NodeConnection[Work[None]], reply: Reply, now_s: float, looked_at_s: float
    ) -> None:
        """Take an error, or a response in an unusual form."""
        if reply.opcode == Opcode.ERROR:
            self._take_error(connection, reply, now_s, looked_at_s)
            return
        data, found = restated(reply, self._columns)
        if found.kinds[0] == MORE:
            self._take_page(connection, data, found, 0, now_s, looked_at_s)
            return
        # `restated` keeps one cell of a condition's response: a boolean, whose last byte says if it
        # held.
        if self._effect.conditional and not data[-1]:
            self._unmet.keep(int(self._numbers_of[connection][reply.stream]), reply.body)
        self._take_plain(connection, data, found, now_s, looked_at_s)

    def _take_apart(self, work: Work[None], index: int) -> bool:
        return self._hooks.take_over(int(work.order[index]))

    def _place_of(self, work: Work[None], index: int) -> str:
        return self._hooks.place(int(work.order[index]))

    def _refused(self, work: Work[None], index: int, reason: str) -> None:
        number = int(work.order[index])
        if self._hooks.take_over(number):
            return
        self.stats.rejected += 1
        rows = self._rows_so_far.pop(number, 0)
        if rows:  # they are handed out as they come: a response may be larger than memory
            reason = f"{reason}; the {rows:,} rows before that are in the output"
        self._hooks.on_reject(number, reason)

    def _erred(self, host: Host, work: Work[None], index: int, error: ServerError) -> None:
        reason = f"{error.name}: {with_reasons(error.message)}"
        if error.code == ErrorCode.READ_FAILURE and work.tries + 1 >= READ_FAILURES_MAX:
            self._refused(work, index, reason)
        elif self._effect.repeatable or self._not_begun(error.code):
            super()._erred(host, work, index, error)
        else:
            self._doubt(int(work.order[index]), reason)

    def _not_begun(self, code: int) -> bool:
        """Return whether the error means that nothing was written.

        If a statement has several partitions, the first may have been written before the error.
        """
        return code in _NOT_BEGUN or (code == ErrorCode.UNAVAILABLE and self._effect.single)

    def _unanswered(self, work: Work[None], indexes: NDArray[np.int64], reason: str) -> None:
        if self._effect.repeatable:
            self._again(work, indexes, reason)
            return
        for number in work.order[indexes].tolist():
            self._doubt(number, reason)

    def _doubt(self, number: int, reason: str) -> None:
        self.stats.in_doubt += 1
        self._hooks.on_doubt(number, reason)

    def _again(
        self, work: Work[None], indexes: NDArray[np.int64], reason: str, *, judged: bool = False
    ) -> None:
        if not self._effect.repeatable and work.tries >= self._options.retries_max:
            # Giving the unit back would repeat its other rows.
            for index in indexes.tolist():
                self._refused(work, index, f"tried {work.tries + 1} times: {reason}")
            return
        super()._again(work, indexes, reason, judged=judged)
        self.stats.retries += len(indexes)

    def _still_tells(self, connection: NodeConnection[Work[None]], now_s: float) -> bool:
        # Responses may be large, and keep the caller busy for long: as long as data comes, the
        # expected response may follow it.
        return connection.used_at_s >= now_s
