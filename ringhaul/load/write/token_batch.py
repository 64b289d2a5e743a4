"""`token-batch`: unlogged batches whose rows share a replica set, through the official driver.

The rows are already encoded, so a batch is a header and a slice of one buffer. A protocol handler
puts that slice on the wire unchanged; everything else (connections, time-outs, re-preparing) is
the driver's. Only one thread touches the state of a writer: the driver's event loop passes answers
through a queue.
"""

from __future__ import annotations

import heapq
import itertools
import queue
import random
import struct
import time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cassandra import OperationTimedOut
from cassandra.pool import Host
from cassandra.protocol import BatchMessage, ProtocolHandler
from cassandra.query import BatchStatement, BatchType
from numpy.typing import NDArray

from ringhaul.cluster.connect import Reconnecting
from ringhaul.cql.batches import entry_head
from ringhaul.cql.frames import offsets_of
from ringhaul.dataplane import latency
from ringhaul.dataplane.base import (
    FAILED_ALONE,
    RequestFailed,
    RequestOptions,
    Target,
    exhausted_error,
)
from ringhaul.dataplane.blame import Blame, Cause, Controlled, Ruling, Suspect, cause_of
from ringhaul.dataplane.control import Control
from ringhaul.dataplane.distance import Distance
from ringhaul.dataplane.pacing import TICK_S
from ringhaul.dataplane.retry import LATE_S, Verdict, backoff_s, classify, message
from ringhaul.dataplane.routing import Routing
from ringhaul.errors import ClusterError
from ringhaul.load.write.base import WriterHooks
from ringhaul.load.write.batch_sizes import BatchSizes
from ringhaul.load.write.grouping import group_rows, order_rows
from ringhaul.records.rows import EncodedRows, bound_values


class Group(NamedTuple):
    """Rows first..last-1 of `order` form one batch for one replica set."""

    replica_set: int
    first: int
    last: int


class EncodedBatch(NamedTuple):
    """The entries of a BATCH as bytes, in place of the driver's list of them."""

    rows_count: int
    entries: memoryview


class EncodedBatchHandler(ProtocolHandler):  # type: ignore[misc]
    """Writes an `EncodedBatch` unchanged; leaves any other message to the driver.

    Layout of BATCH: section 4.1.7 of the native protocol specification; v5 widened the flags
    to an int.
    """

    @classmethod
    def encode_message(
        cls,
        msg: Any,
        stream_id: int,
        protocol_version: int,
        compressor: Any,
        allow_beta_protocol_version: bool,
    ) -> bytes:
        batch = msg.queries if isinstance(msg, BatchMessage) else None
        if not isinstance(batch, EncodedBatch):
            encoded: bytes = super().encode_message(
                msg, stream_id, protocol_version, compressor, allow_beta_protocol_version
            )
            return encoded
        tail = struct.pack(">HI" if protocol_version >= 5 else ">HB", msg.consistency_level, 0)
        length = 3 + len(batch.entries) + len(tail)
        head = struct.pack(
            ">BBhBiBH",
            protocol_version,
            0,
            stream_id,
            BatchMessage.opcode,
            length,
            BatchType.UNLOGGED.value,
            batch.rows_count,
        )
        return b"".join((head, batch.entries, tail))


class _Entries(NamedTuple):
    """Entries of batches in one buffer."""

    offsets: NDArray[np.int32]  #: where each entry begins, and where the last entry ends
    data: pa.Buffer


class _Request(NamedTuple):
    """One pending batch, with what is needed to send it again or to name its rows."""

    rows: EncodedRows
    order: np.ndarray[Any, np.dtype[np.int64]]  #: row index of each position
    offsets: np.ndarray[Any, np.dtype[np.int32]]  #: byte offset of each position
    buffer: memoryview
    group: Group
    tries: int
    suspect: Suspect | None = None

    @property
    def bytes_count(self) -> int:
        return int(self.offsets[self.group.last] - self.offsets[self.group.first])


class _Flight(NamedTuple):
    """A request that was not answered yet."""

    request: _Request
    host: Host
    sent_at: float


class TokenBatchWriter:
    """The writer that the module describes; its interface is `base.Writer`."""

    def __init__(self, target: Target, options: RequestOptions, hooks: WriterHooks) -> None:
        session, prepared = target.session, target.prepared
        session.client_protocol_handler = EncodedBatchHandler
        self.stats = hooks.stats
        self._session = session
        self._reconnecting = Reconnecting(session)
        self._routing = Routing(session, target.keyspace)
        self._options = options
        self._hooks = hooks
        self._sizes = BatchSizes(prepared)
        self._entry_head = pa.scalar(
            entry_head(prepared.query_id, len(prepared.column_metadata)), pa.binary()
        )
        self._answers: queue.SimpleQueue[tuple[int, BaseException | None]] = queue.SimpleQueue()
        self._flights: dict[int, _Flight] = {}  # by number, in the order they were sent
        self._waiting: list[tuple[float, int, _Request]] = []  # heap by time of the retry
        self._numbers = itertools.count()  # identifies flights, breaks ties in the heap
        self._jitter = random.Random()
        self._blame = Blame(options.retries_max)
        self._control = Control(session, prepared, options.consistency)
        self._distance = Distance()  # distance to the nearest node
        self._bytes_in_flight = 0
        self._per_host: dict[Host, int] = {}
        self._ticked_at = time.monotonic()

    def write(self, rows: EncodedRows) -> None:
        sets, tokens = self._routing.assign(rows.keys)
        order = order_rows(sets, tokens)
        offsets, data = self._entries(rows, order)
        sizes = self._sizes.of(rows, order, np.diff(offsets).astype(np.int64))
        buffer = memoryview(data)
        sets = sets[order]
        cuts = group_rows(sets, tokens[order], sizes, self._options.batch_rows_max)
        for first, last in itertools.pairwise(cuts.tolist()):
            group = Group(int(sets[first]), first, last)
            request = _Request(rows, order, offsets, buffer, group, 0)
            while self._is_full(request):
                self._take_answer()
            self._hooks.throttle(group.last - group.first)
            self._send(request)

    def flush(self) -> None:
        while self._flights or self._waiting:
            self._take_answer()

    def close(self) -> None:
        """Do nothing: late answers stay in this writer's queue, which is no longer read."""

    def _entries(self, rows: EncodedRows, order: NDArray[np.int64]) -> _Entries:
        """Return the batch entries of some rows, one after the other."""
        entries = pc.binary_join_element_wise(
            self._entry_head,
            rows.joined().take(pa.array(order)),
            pa.scalar(b"", pa.binary()),
        )
        return _Entries(offsets_of(entries), entries.buffers()[2])

    def _as_repeated(self, request: _Request) -> _Request:
        """Return the request for a retry, with later timestamps if its rows need them."""
        rows, group = request.rows.later(request.tries), request.group
        if rows is request.rows:
            return request
        order = request.order[group.first : group.last]
        offsets, data = self._entries(rows, order)
        return request._replace(
            order=order,
            offsets=offsets,
            buffer=memoryview(data),
            group=Group(group.replica_set, 0, len(order)),
        )

    def _is_full(self, request: _Request) -> bool:
        """Return whether a request must wait. A single request may always go, however large."""
        busy = len(self._flights) + len(self._waiting)
        return busy > 0 and (
            busy >= min(self._requests_max(), self._hooks.leave().requests)
            or self._bytes_in_flight + request.bytes_count > self._options.bytes_in_flight_max
        )

    def _requests_max(self) -> int:
        """Return the limit of unanswered requests, which is higher if the nodes are far."""
        far = self._distance.reach(self._options.requests_in_flight_max)
        return min(far, self._options.requests_far_max)

    def _send(self, request: _Request) -> None:
        group = request.group
        entries = request.buffer[request.offsets[group.first] : request.offsets[group.last]]
        statement = BatchStatement(BatchType.UNLOGGED, consistency_level=self._options.consistency)
        statement._statements_and_parameters = EncodedBatch(group.last - group.first, entries)
        host = self._choose_host(group.replica_set, request.tries)
        self._bytes_in_flight += request.bytes_count
        self._per_host[host] = self._per_host.get(host, 0) + 1
        number = next(self._numbers)
        self._flights[number] = _Flight(request, host, time.perf_counter())
        answers = self._answers
        try:
            future = self._session.execute_async(
                statement, host=host, timeout=self._options.request_timeout_s
            )
        except Exception as error:
            answers.put((number, error))
            return
        future.add_callbacks(
            lambda _: answers.put((number, None)), lambda error: answers.put((number, error))
        )

    def _choose_host(self, replica_set: int, tries: int) -> Host:
        """Return the replica with the fewest requests in flight, in the nearest data centre.

        A request that failed goes to the next one of these.
        """
        hosts = self._routing.replica_sets[replica_set]
        up = [host for host in hosts if host.is_up is not False] or list(hosts)
        local_dc = up[0].datacenter
        nearest = [host for host in up if host.datacenter == local_dc]
        if tries:
            return nearest[tries % len(nearest)]
        return min(nearest, key=lambda host: self._per_host.get(host, 0))

    def _take_answer(self) -> None:
        """Handle one answer, or send a retry that is due; wait up to `TICK_S` for either."""
        now = time.monotonic()
        if now - self._ticked_at >= TICK_S:
            self._ticked_at = now
            self._hooks.tick()
            self._answer_lost()
        if self._waiting and self._waiting[0][0] <= now:
            self._send(heapq.heappop(self._waiting)[2])
            return
        pause = min(TICK_S, self._waiting[0][0] - now) if self._waiting else TICK_S
        try:
            number, error = self._answers.get(timeout=pause)
        except queue.Empty:
            return
        flight = self._flights.pop(number, None)
        if flight is None:
            return  # the answer to a request that was abandoned
        request, host, sent_at = flight
        self._bytes_in_flight -= request.bytes_count
        self._per_host[host] -= 1
        if error is None:
            took_s = time.perf_counter() - sent_at
            self._distance.saw(took_s, now)
            self.stats.latencies[latency.bucket(int(took_s * 1e6))] += 1
            self.stats.written += request.group.last - request.group.first
            self._blame.took(host, request.group.replica_set, time.monotonic())
        else:
            self._handle_error(request, host, error)

    def _answer_lost(self) -> None:
        """Time out requests that the driver forgot.

        After a node stopped answering, the driver's own time-out was seen not to come; the
        unit would then wait forever.
        """
        overdue_at = time.perf_counter() - self._options.request_timeout_s - LATE_S
        for number, flight in self._flights.items():
            if flight.sent_at > overdue_at:
                return
            self._answers.put((number, OperationTimedOut(last_host=flight.host)))

    def _handle_error(self, request: _Request, host: Host, error: BaseException) -> None:
        verdict = classify(error)
        if verdict is Verdict.FATAL:
            raise ClusterError(f"the cluster refuses all writes: {message(error)}") from error
        group = request.group
        if verdict is Verdict.ROW:
            if group.last - group.first == 1:
                self._hooks.on_reject(request.rows, int(request.order[group.first]), message(error))
                return
            self._take_apart(request)
            return
        cause, suspect = cause_of(error), request.suspect
        if cause is not Cause.MOMENT:
            row = id(request.rows), int(request.order[group.first])
            hosts = len(self._routing.replica_sets[group.replica_set])
            suspect = self._blame.suspect(
                suspect, host, group.replica_set, row, hosts, time.monotonic()
            )
            if group.last - group.first > 1:
                if suspect.times >= self._blame.shared_tries[cause]:
                    self._take_apart(request)
                    return
            elif self._convicted(request, suspect, cause, message(error)):
                self._hooks.on_reject(
                    request.rows,
                    int(request.order[group.first]),
                    f"{message(error)}; {FAILED_ALONE} {suspect.times} times",
                )
                return
        judged = cause is Cause.UNCLEAR and suspect is not None
        if not judged and request.tries >= self._options.retries_max:
            raise RequestFailed(
                f"a write failed {request.tries + 1} times, the last time with: {message(error)}"
            ) from error
        self.stats.retries += 1
        self._reconnecting.begin()
        again = self._as_repeated(request._replace(tries=request.tries + 1, suspect=suspect))
        tries = suspect.times if judged and suspect is not None else again.tries
        self._again(again, backoff_s(tries, self._jitter))

    def _take_apart(self, request: _Request) -> None:
        """Send the rows of a batch one by one, so that the server says which row is at fault.

        Other rows may have been written already: sending them twice is harmless, as each carries
        its own timestamp.
        """
        again = self._as_repeated(request._replace(tries=request.tries + 1, suspect=None))
        for first in range(again.group.first, again.group.last):
            row = Group(again.group.replica_set, first, first + 1)
            self._again(again._replace(group=row), 0.0)

    def _convicted(self, request: _Request, suspect: Suspect, cause: Cause, reason: str) -> bool:
        """Return whether a row that failed again is to blame. Raises if the cluster is."""
        row, replica_set = int(request.order[request.group.first]), request.group.replica_set

        def control() -> Controlled:
            self._hooks.tick()
            return self._control.take(bound_values(request.rows, row))

        if cause is Cause.LATE:
            tries_left = self._options.retries_max - request.tries
            return self._blame.rule_at_last(suspect, tries_left, replica_set, control)
        ruling = self._blame.rule(suspect, replica_set, control)
        if ruling in (Ruling.CLUSTER, Ruling.OPEN):
            place = self._hooks.place(request.rows, row)
            raise exhausted_error(ruling, "a write", suspect.times, reason, place)
        return ruling is Ruling.ROW

    def _again(self, request: _Request, pause_s: float) -> None:
        due = time.monotonic() + pause_s
        heapq.heappush(self._waiting, (due, next(self._numbers), request))
