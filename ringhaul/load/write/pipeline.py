"""`pipeline`: rows in small batches at the server's own pace, and `single`: one by one.

The rows of a block become frames in one buffer; whole runs of them are handed to the replica's
socket at once, and the answers are counted column-wise. Batches spare the server a request for each
row, which is a third of its work if rows are small; a batch stays below the server's warning
thresholds (see `grouping`), and the coordinator is a replica of all its rows.

Sequence: `write` queues a block's frames by replica set and returns when they are on their way,
`flush` when all frames were answered. In between `dispatcher.py` sends what the windows have room
for and reads what has arrived. An answer that is not VOID finds its rows by its stream id; the rows
of a batch that is refused for its content are sent again singly, so that the server names the row
at fault.

A slow replica must not hold up the others: `write` asks for more rows as soon as some connection is
idle, as long as the rows kept (queued, unanswered, to be retried) come from a few blocks.
"""

from __future__ import annotations

import logging
import math
import re
import time
import weakref
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from cassandra.pool import Host
from numpy.typing import NDArray

from ringhaul.cql.batches import batch_frames, entries_of
from ringhaul.cql.frames import (
    STREAMS_MAX,
    FrameError,
    Frames,
    Opcode,
    Reply,
    ServerError,
    execute_frames,
    offsets_of,
)
from ringhaul.dataplane.base import RequestOptions, Target
from ringhaul.dataplane.connection import NodeConnection
from ringhaul.dataplane.dispatcher import Dispatcher
from ringhaul.dataplane.pacing import Leave
from ringhaul.dataplane.window import WindowStats
from ringhaul.dataplane.work import Segment, Work
from ringhaul.load.write.base import WriterHooks
from ringhaul.load.write.batch_sizes import BatchSizes
from ringhaul.load.write.grouping import BATCH_ROWS_MAX, group_rows, interleave, order_rows
from ringhaul.option_names import job_option
from ringhaul.records.rows import EncodedRows

log = logging.getLogger(__name__)

#: Blocks whose rows are kept at most; one of 4 MiB of text takes some 30 MiB in all its forms.
BLOCKS_KEPT_MAX = 3
#: Rows per batch, on average, from which on batches are made.
BATCH_ROWS_WORTH = 2
#: Rows that a worker process sends first, to see whether a server warns of their batches, and how
#: long the other rows wait for that before they go one by one.
TRIAL_ROWS = 100
TRIAL_WAIT_S = 0.25
_NOT_AGAIN = (
    "may be written or not, and is not sent again: at the same time that would double its list"
)
#: Matches messages about batches, but not about a column `batch_id` or a table `shop.batch`.
_OF_BATCHES = re.compile(r"(?<![.\w'\"])batch(es)?(?![.\w'\"])", re.IGNORECASE)


class _Placed(NamedTuple):
    """Rows of a block, grouped by replica set."""

    rows: EncodedRows
    joined: pa.BinaryArray  #: bound values of all rows of the block, in its order
    order: NDArray[np.int64]  #: index in the block of each row
    sets: NDArray[np.int32]
    tokens: NDArray[np.int64]

    def part(self, chosen: NDArray[np.bool_]) -> _Placed:
        """Return some of them."""
        order, sets, tokens = self.order[chosen], self.sets[chosen], self.tokens[chosen]
        return self._replace(order=order, sets=sets, tokens=tokens)


class PipelineWriter(Dispatcher[EncodedRows]):
    """`pipeline`: see the module; the interface is `base.Writer`."""

    #: Whether rows may share a request.
    batches = True

    has_fallback = True

    def __init__(self, target: Target, options: RequestOptions, hooks: WriterHooks) -> None:
        self.stats = hooks.stats
        self._options, self._hooks = options, hooks
        self._blocks: list[weakref.ref[EncodedRows]] = []
        self._sizes = BatchSizes(target.prepared)
        #: Rows in the request of each stream id, by connection.
        self._rows_by_stream: WeakKeyDictionary[
            NodeConnection[Work[EncodedRows]], NDArray[np.int64]
        ] = WeakKeyDictionary()
        window_stats = self.stats.window or WindowStats(latencies=self.stats.latencies)
        super().__init__(target, options, hooks, window_stats)

    def write(self, rows: EncodedRows) -> None:
        placed = self._place(rows)
        tried = 0
        if self._may_share(self._hooks.leave()) and not self._plane.batches_tried:
            tried = min(TRIAL_ROWS, len(rows))
            if self._queue(placed.part(placed.order < tried)):
                self._hear_of_trial()
            placed = placed.part(placed.order >= tried)
        self._queue(placed, alone=tried > 0 and not self._plane.batches_tried)
        self._blocks.append(weakref.ref(rows))
        while self._pending() and (self._full() or (self._queues and not self._starving())):
            self._turn()

    def flush(self) -> None:
        while self._pending():
            self._turn()
        self.stats.window = self._window_stats

    def _place(self, rows: EncodedRows) -> _Placed:
        sets, tokens = self._routing.assign(rows.keys)
        order = order_rows(sets, tokens)
        return _Placed(rows, rows.joined(), order, sets[order], tokens[order])

    def _queue(self, placed: _Placed, *, alone: bool = False) -> bool:
        """Queue rows, in batches if worthwhile and not `alone`; return whether in batches."""
        rows, joined, order, sets, _ = placed
        if not len(order):
            return False
        cuts = None if alone else self._cuts(placed)
        turns, in_turn = interleave(np.arange(len(order) + 1) if cuts is None else cuts, sets)
        order, cuts = order[turns], None if cuts is None else in_turn
        frames = self._frames(joined.take(pa.array(order)), cuts, rows)
        begins = np.flatnonzero(np.diff(sets, prepend=-1)).tolist()
        for begin, end in zip(begins, [*begins[1:], len(sets)], strict=True):
            first, last = (begin, end) if cuts is None else np.searchsorted(cuts, [begin, end])
            work = Work(rows, frames, order, int(sets[begin]), 0, cuts)
            self._enqueue(Segment(work, int(first), int(last)))
        return cuts is not None

    def _hear_of_trial(self) -> None:
        """Wait briefly until a batch was accepted or the server objected.

        The way there, and the time until a connection is open, do not count.
        """
        sent_at_s = math.inf
        while self._plane.batches and not self._plane.batches_tried:
            now_s = time.monotonic()
            if self._busy():
                sent_at_s = min(sent_at_s, now_s)
            if not self._pending() or now_s - sent_at_s > TRIAL_WAIT_S + self._plane.distance_s:
                return
            self._turn()

    def _cuts(self, placed: _Placed) -> NDArray[np.int64] | None:
        """Return the cuts of batches; None: rows go one by one, as few would share a request."""
        if not self._may_share(self._hooks.leave()):
            return None
        row_bytes = np.diff(offsets_of(placed.joined)).astype(np.int64)[placed.order]
        sizes = self._sizes.of(placed.rows, placed.order, row_bytes)
        cuts = group_rows(placed.sets, placed.tokens, sizes, self._options.batch_rows_max)
        return cuts if len(row_bytes) >= BATCH_ROWS_WORTH * (len(cuts) - 1) else None

    def _may_share(self, leave: Leave) -> bool:
        """Return whether rows may share a request.

        Not with a server that warns of it, nor while a rate limit lets only a few rows go at once:
        a whole batch would wait together.
        """
        return self.batches and self._plane.batches and leave.rows >= BATCH_ROWS_MAX

    def _as_sent(self, segment: Segment[EncodedRows], leave: Leave) -> Segment[EncodedRows]:
        """Split batches that were made before batches became unwanted."""
        if segment.work.cuts is None or self._may_share(leave):
            return segment
        return self._apart(segment)

    def _apart(self, segment: Segment[EncodedRows]) -> Segment[EncodedRows]:
        """Return the rows of some batches, each in a separate request."""
        work, numbers = segment.work, range(segment.first, segment.last)
        offsets, data = work.frames.offsets, work.frames.buffer
        entries = [entries_of(data[offsets[i] : offsets[i + 1]].tobytes()) for i in numbers]
        frames = self._frames(pa.concat_arrays(entries), None, work.rows)
        order = np.concatenate([work.rows_of(i) for i in numbers])
        return Segment(work._replace(frames=frames, order=order, cuts=None), 0, len(order))

    def _frames(
        self, joined: pa.BinaryArray, cuts: NDArray[np.int64] | None, rows: EncodedRows
    ) -> Frames:
        """Return requests for rows: one per batch of `cuts`, or one per row if that is None."""
        query_id, consistency = self._target.prepared.query_id, self._options.consistency
        if cuts is None:
            return execute_frames(joined, query_id, consistency, len(rows.columns))
        return batch_frames(joined, cuts, query_id, consistency, len(rows.columns))

    def _again(
        self,
        work: Work[EncodedRows],
        indexes: NDArray[np.int64],
        reason: str,
        *,
        judged: bool = False,
    ) -> None:
        if work.rows.exact and work.rows.timestamp_at is not None:
            for index in indexes.tolist():
                for row in work.rows_of(index).tolist():
                    exact = job_option("exact-timestamps")
                    why = f"{_NOT_AGAIN} ({exact}); it failed with: {reason}"
                    self._hooks.on_reject(work.rows, row, why)
            return
        super()._again(work, indexes, reason, judged=judged)
        self.stats.retries += len(indexes)

    def _as_repeated(self, again: Work[EncodedRows]) -> Work[EncodedRows]:
        rows = again.rows.later(again.tries)
        if rows is again.rows:
            return again
        joined = rows.joined().take(pa.array(again.order))
        return again._replace(frames=self._frames(joined, again.cuts, rows))

    def _window_bounds(self) -> tuple[int, int]:
        return self._options.requests_in_flight_max, self._options.requests_far_max

    def _full(self) -> bool:
        """Return whether enough rows are kept; a row that is needed keeps its block alive."""
        self._blocks = [block for block in self._blocks if block() is not None]
        return len(self._blocks) > BLOCKS_KEPT_MAX

    def _sent(
        self,
        connection: NodeConnection[Work[EncodedRows]],
        work: Work[EncodedRows],
        first: int,
        streams: NDArray[np.int64],
    ) -> None:
        of_stream = self._rows_by_stream.get(connection)
        if of_stream is None:
            of_stream = self._rows_by_stream[connection] = np.ones(STREAMS_MAX, np.int64)
        begin = int(streams[0])
        cuts = work.cuts
        of_stream[begin : begin + len(streams)] = (
            1 if cuts is None else np.diff(cuts[first : first + len(streams) + 1])
        )

    def _take(self, connection: NodeConnection[Work[EncodedRows]], looked_at_s: float) -> None:
        parsed = connection.pull()
        now_s = time.monotonic()
        sets = self._watch(connection, parsed.voids)
        connection.window.answered(parsed.voids, now_s, looked_at_s)
        if len(parsed.voids):
            self._took(connection, sets, now_s)
            rows = int(self._rows_by_stream[connection][parsed.voids].sum())
            self._written(rows, len(parsed.voids))
        for reply in parsed.others:
            if not self._control(connection, reply):
                self._take_other(connection, reply, now_s, looked_at_s)

    def _written(self, rows: int, answers: int) -> None:
        self.stats.written += rows
        # More rows than answers: some batch was accepted.
        self._plane.batches_tried = self._plane.batches_tried or rows > answers

    def _take_other(
        self,
        connection: NodeConnection[Work[EncodedRows]],
        reply: Reply,
        now_s: float,
        looked_at_s: float,
    ) -> None:
        """Handle an answer that is not a plain VOID."""
        if reply.is_void:
            work, index = connection.window.answered_one(reply.stream, now_s, looked_at_s)
            self._took(connection, [work.replica_set], now_s)
            for warning in reply.warnings:
                self._heed(work, warning)
            self._written(len(work.rows_of(index)), 1)
            return
        if reply.opcode != Opcode.ERROR:
            raise FrameError(f"an INSERT was answered by message {reply.opcode:#04x}")
        self._take_error(connection, reply, now_s, looked_at_s)

    def _erred(self, host: Host, work: Work[EncodedRows], index: int, error: ServerError) -> None:
        super()._erred(host, work, index, error)
        self._heed(work, error.message)

    def _refused(self, work: Work[EncodedRows], index: int, reason: str) -> None:
        if self._take_apart(work, index):
            self._heed(work, reason)
        else:
            self._hooks.on_reject(work.rows, int(work.order[index]), reason)

    def _take_apart(self, work: Work[EncodedRows], index: int) -> bool:
        if work.cuts is None:
            return False
        # If the batch spans several partitions, all its other rows may have been written.
        apart = self._apart(Segment(work, index, index + 1))
        again = self._as_repeated(apart.work._replace(tries=work.tries + 1, suspect=None))
        self._enqueue(Segment(again, apart.first, apart.last))
        return True

    def _place_of(self, work: Work[EncodedRows], index: int) -> str:
        return self._hooks.place(work.rows, int(work.order[index]))

    def _heed(self, work: Work[EncodedRows], words: str) -> None:
        """Stop making batches if the server objects to them."""
        if work.cuts is not None and self._plane.batches and _OF_BATCHES.search(words):
            # Logged once: the plane remembers.
            self._plane.batches = False
            log.warning("writing row by row, not in batches: the server says: %s", words)


class SingleWriter(PipelineWriter):
    """`single`: the pipeline with a request for each row."""

    batches = False
