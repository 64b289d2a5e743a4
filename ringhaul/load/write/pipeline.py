"""`pipeline`: single statements at the server's own speed.

The rows of a block become EXECUTE frames in one buffer; whole runs of them are handed to the
replica's socket at once, and the answers are counted column-wise. On the server single statements
cost no more than batches; what made them slow was the cost of each in the client.

The order of things: `write` queues a block's frames by replica set and returns when they are on
their way, `flush` when every one was answered. In between `dispatch.py` sends what the windows
have room for and reads what has come. An answer that is not VOID finds its row by its stream id.

When a replica is slow the others must not wait for it: `write` asks for more rows as soon as some
wire has nothing to do, as long as the rows kept (queued, unanswered, to be tried again) are those
of a few blocks.
"""

from __future__ import annotations

import time
import weakref

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.frames import FrameError, Opcode, Reply, execute_frames
from ringhaul.load.rows import EncodedRows
from ringhaul.load.write.base import Target, WriteOptions, WriterHooks, WriteStats
from ringhaul.load.write.dispatch import Dispatcher
from ringhaul.load.write.window import WindowStats
from ringhaul.load.write.wire import Wire
from ringhaul.load.write.work import Segment, Work

#: Blocks whose rows are kept at most; one of 4 MiB of text takes some 30 MiB in all its forms.
BLOCKS_KEPT_MAX = 3


class PipelineWriter(Dispatcher[EncodedRows]):
    """See the module; the interface is `base.Writer`."""

    def __init__(self, target: Target, options: WriteOptions, hooks: WriterHooks) -> None:
        self.stats = WriteStats()
        self._options, self._hooks = options, hooks
        self._blocks: list[weakref.ref[EncodedRows]] = []
        super().__init__(target, options, hooks, WindowStats(latencies=self.stats.latencies))

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
            work = Work(rows, frames, order, replica_set, 0)
            self._enqueue(Segment(work, first, last))
            first = last
        self._blocks.append(weakref.ref(rows))
        while self._pending() and (self._full() or (self._queues and not self._starving())):
            self._turn()

    def flush(self) -> None:
        while self._pending():
            self._turn()
        self.stats.window = self._window_stats

    def _again(self, work: Work[EncodedRows], indexes: NDArray[np.int64], reason: str) -> None:
        super()._again(work, indexes, reason)
        self.stats.retries += len(indexes)

    def _full(self) -> bool:
        """As many rows are kept as may be; whoever needs a row holds on to its block."""
        self._blocks = [block for block in self._blocks if block() is not None]
        return len(self._blocks) > BLOCKS_KEPT_MAX

    def _take(self, wire: Wire[Work[EncodedRows]], looked_at_s: float) -> None:
        parsed = wire.pull()
        now_s = time.monotonic()
        wire.window.answered(parsed.voids, now_s, looked_at_s)
        self.stats.written += len(parsed.voids)
        for reply in parsed.others:
            if not self._control(wire, reply):
                self._take_other(wire, reply, now_s, looked_at_s)

    def _take_other(
        self, wire: Wire[Work[EncodedRows]], reply: Reply, now_s: float, looked_at_s: float
    ) -> None:
        """The answer to a row that is not a plain VOID."""
        if reply.is_void:
            wire.window.answered_one(reply.stream, now_s, looked_at_s)
            self.stats.written += 1
            return
        if reply.opcode != Opcode.ERROR:
            raise FrameError(f"an INSERT was answered by message {reply.opcode:#04x}")
        self._take_error(wire, reply, now_s, looked_at_s)

    def _refused(self, work: Work[EncodedRows], index: int, reason: str) -> None:
        self._hooks.on_reject(work.rows, int(work.order[index]), reason)
