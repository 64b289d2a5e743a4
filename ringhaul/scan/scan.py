"""Read token ranges page by page, prefetching the next page while decoding the current one.

Two threads take part in a scan. The driver's thread puts each page that arrives into the queue of
its range and requests the next one at once, if there is room. The consumer's thread, in `batches`,
decodes pages and handles errors. Shared state is under one lock; `_choose` alone decides what to
request next.

After an error the request is sent again from the last paging state, after a pause, to another
replica. A read that took too long is retried with half the rows, and if that does not help with
half the range: in a long stretch of deleted rows, or of rows that a filter drops, no page size is
small enough.

If a read fails because of the data, its range is narrowed down to the unreadable part
(`narrowing`), which either raises an error that names the place, or is skipped and listed.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

import pyarrow as pa
from cassandra import FunctionFailure, OperationTimedOut, ReadFailure, ReadTimeout
from cassandra.pool import Host
from cassandra.protocol import OverloadedErrorMessage

from ringhaul.breadcrumb import TRAIL
from ringhaul.cluster.errors import translate_error
from ringhaul.dataplane import latency
from ringhaul.dataplane.pacing import Leave, free
from ringhaul.dataplane.retry import LATE_S, Verdict, backoff_s, classify, message
from ringhaul.errors import ClusterError, Transient
from ringhaul.option_names import job_option
from ringhaul.output.missing_ranges import MissingRange, place_text
from ringhaul.scan.cursor import Rest, pack_cursor, token_reached, unpack_cursor
from ringhaul.scan.faults import ReadFault, data_fault, forbids_page
from ringhaul.scan.narrowing import SHRINK, Narrowing
from ringhaul.scan.options import ScanOptions, ScanStats, ScanTarget
from ringhaul.scan.pages import Page
from ringhaul.scan.range_run import Arrival, RangeRun, Todo
from ringhaul.scan.ranges import TokenRange
from ringhaul.scan.ring import replicas_of
from ringhaul.scan.sizing import FIRST_ROWS, Brake, PageSize

#: How often `tick` is called while the scan waits.
TICK_S = 0.2
#: Consecutive reads of a range that took too long before it is split.
SPLIT_TRIES = 3
#: Distance from which on a scan begins with pages as long as the previous scan's: the three round
#: trips until pages are long enough would show.
FAR_S = 0.01
#: Errors that mean that the read was too large.
_TOO_MUCH = (ReadTimeout, ReadFailure, OperationTimedOut, OverloadedErrorMessage)


class ReadFailed(Transient):
    """A page was requested as often as allowed; the unit will be retried later."""


class RangeUnreadable(ClusterError):
    """No replica can read a range, however small the parts and however often it is tried."""


def ignore(_text: str) -> None:
    """Ignore a message."""


def unnamed(_tokens: TokenRange) -> str:
    """Return "": the partition is unknown."""
    return ""


class Decoder(Protocol):
    """Decodes a page into rows."""

    def decode(self, body: bytes) -> pa.RecordBatch:
        """Return the rows of the body of a RESULT message of kind Rows."""


class RangeScan:
    """The rows of some token ranges; see the module. For one consumer thread."""

    def __init__(
        self,
        target: ScanTarget,
        ranges: Sequence[TokenRange],
        decoder: Decoder,
        options: ScanOptions,
        *,
        tick: Callable[[], None] = lambda: None,
        leave: Callable[[], Leave] = free,
        cursor: str | None = None,
        on_trouble: Callable[[str], None] = ignore,
        partition_of: Callable[[TokenRange], str] = unnamed,
    ) -> None:
        """Prepare a scan of `ranges`, or of the rest that a `cursor` of an earlier scan holds.

        `tick` is called between pages and, at least every `TICK_S`, while waiting; it raises to
        stop. `leave` says what may be requested now, and is called in either thread. `on_trouble`
        gets a message for each failed read. `partition_of` names the partition of a range of one
        token, or returns "".
        """
        rests = [Rest(one) for one in ranges] if cursor is None else unpack_cursor(cursor)
        self.stats = ScanStats()
        #: Skipped ranges, in the order in which they were found.
        self.missing: list[MissingRange] = []
        self._narrowing = Narrowing(options.skip_failed)
        self._on_trouble, self._partition_of = on_trouble, partition_of
        # Ranges in token order: the started ranges here, the others in `_todo`.
        self._runs: list[RangeRun] = []
        self._todo = deque(Todo(*rest) for rest in rests)
        self._waiting = 0  # pages requested and not handed out
        self._target = target
        self._decoder = decoder
        self._options = options
        self._tick, self._leave = tick, leave
        rows_first = options.page_rows_first
        if rows_first == FIRST_ROWS and target.reader.distance_s > FAR_S:
            rows_first = target.reader.learnt(target.prepared) or rows_first
        self._size = PageSize(options.page_bytes, rows_first)
        self._numbers = itertools.count()
        self._jitter = random.Random()
        self._closed = False
        self._changed = threading.Condition(threading.Lock())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, a batch for each page that has any.

        Raises `ReadFailed` (a page failed too often), `RangeUnreadable` (no replica can read some
        range, and skipping is off), `ClusterError` (no row can be read), the decoder's errors for a
        malformed page, and what `tick` raises.
        """
        self._target.reader.sound()
        try:
            while self._runs or self._todo:
                self._tick()
                self._send()
                run, arrival = self._take()
                if run is None:
                    continue
                if arrival is None:
                    self._failed(run)
                    continue
                self._send()
                TRAIL.at("decode", f"a page of the token range {run.range}")
                batch = self._decoder.decode(arrival.page.body)
                TRAIL.stage("read")
                self._deliver(run, arrival, batch.num_rows)
                if batch.num_rows:
                    yield batch
        finally:
            self.close()

    def cursor(self) -> str:
        """Return what was not handed out yet; "" at the end."""
        with self._changed:
            started = [Rest(run.range, run.state) for run in self._runs]
            return pack_cursor([*started, *(Rest(one.range, one.state) for one in self._todo)])

    def close(self) -> None:
        """Request nothing more; responses still on their way are dropped."""
        with self._changed:
            self._closed = True
        if self.stats.pages:
            self._target.reader.learn(self._target.prepared, self._size.rows)

    # -- requests

    def _send(self) -> None:
        """Send all requests that there is room for. In either thread, without the lock."""
        while True:
            with self._changed:
                run = self._choose()
                if run is None:
                    return
                number = self._begin(run)
                rows = run.rows = min(run.brake.least(self._size.rows), self._leave().rows)
                state = run.next_state
            self._target.reader.request(
                self._target.prepared,
                run.range,
                state,
                rows=rows,
                consistency=self._options.consistency,
                timeout_s=self._options.request_timeout_s,
                host=run.hosts[0],
                on_page=partial(self._arrived, run, number),
                on_error=partial(self._erred, run, number),
            )

    def _choose(self) -> RangeRun | None:
        """Return the first range to request a page for now.

        Pages of other ranges never hold up the first range: when in order, the consumer takes
        nothing else.
        """
        options = self._options
        if self._closed:
            return None
        if sum(run.request is not None for run in self._runs) >= self._leave().requests:
            return None
        unended = 0
        now = time.monotonic()
        at_once = options.at_once(self._target.reader.distance_s)
        full = self._waiting >= at_once * options.pages_ahead
        for index, run in enumerate(self._runs):
            if run.ended:
                continue
            if unended >= at_once:
                return None
            unended += 1
            if full and index:
                return None
            idle = run.request is None and run.error is None and run.due <= now
            if idle and len(run.pages) < options.pages_ahead:
                return run
        if not self._todo or unended >= at_once or (full and self._runs):
            return None
        tokens, state, suspect = self._todo.popleft()
        self._runs.append(RangeRun(tokens, state, state, suspect=suspect))
        return self._runs[-1]

    def _begin(self, run: RangeRun) -> int:
        if not run.hosts:
            run.hosts = self._hosts(run.range)
        self._waiting += 1
        run.request = next(self._numbers)
        run.sent_at = time.monotonic()
        return run.request

    def _hosts(self, tokens: TokenRange) -> tuple[Host, ...]:
        """Return the hosts to try for a range in order: its replicas, from a random replica on."""
        hosts = replicas_of(self._target.reader.session, self._target.keyspace, tokens.hi)
        up = [host for host in hosts if host.is_up is not False] or list(hosts)
        first = self._jitter.randrange(len(up))
        return tuple(up[first:] + up[:first])

    # -- responses, in the driver's thread

    def _arrived(self, run: RangeRun, number: int, page: Page) -> None:
        with self._changed:
            if run.request != number:
                return  # given up meanwhile
            run.request = None
            run.tries = run.faults = run.confirmed = 0
            run.next_state, run.ended = page.state, page.state is None
            self._size.saw(page.rows, len(page.body))
            run.brake.good(self._size.rows)
            latency_us = int((time.monotonic() - run.sent_at) * 1e6)
            run.pages.append(Arrival(page, latency_us))
            self._changed.notify()
        self._send()

    def _erred(self, run: RangeRun, number: int, error: BaseException) -> None:
        with self._changed:
            if run.request == number:
                self._set_error(run, error)
                self._changed.notify()

    def _set_error(self, run: RangeRun, error: BaseException) -> None:
        self._waiting -= 1
        run.request = None
        run.error = error

    # -- handing out, in the consumer's thread

    def _take(self) -> tuple[RangeRun | None, Arrival | None]:
        """Return a run with its next page, or without a page after an error; else (None, None).

        Waits up to TICK_S. The pages that came before an error come first.
        """
        with self._changed:
            found = self._ready()
            if found is None:
                now = time.monotonic()
                pauses = [run.due - now for run in self._runs if run.due > now]
                self._changed.wait(min([TICK_S, *pauses]))
                found = self._ready()
            if found is None:
                self._answer_lost()
                return None, None
            return found, found.pages.popleft() if found.pages else None

    def _ready(self) -> RangeRun | None:
        """Return the first run with a page or an error; in order, only the first run's pages."""
        for index, run in enumerate(self._runs):
            if run.pages:
                if not (index and self._options.in_order):
                    return run
            elif run.error is not None:
                return run
        return None

    def _deliver(self, run: RangeRun, arrival: Arrival, rows: int) -> None:
        with self._changed:
            self._waiting -= 1
            run.state = arrival.page.state
            if run.ended and not run.pages:
                self._runs.remove(run)
        stats = self.stats
        stats.pages += 1
        stats.rows += rows
        stats.bytes += len(arrival.page.body)
        stats.latencies[latency.bucket(arrival.latency_us)] += 1

    def _answer_lost(self) -> None:
        """Time out requests that the driver forgot.

        On a node that stops answering, the driver's own timeout has been seen not to fire; the unit
        would wait forever.
        """
        overdue_at = time.monotonic() - self._options.request_timeout_s - LATE_S
        for run in self._runs:
            if run.request is not None and run.sent_at < overdue_at:
                self._set_error(run, OperationTimedOut())

    def _failed(self, run: RangeRun) -> None:
        """Retry a run's page later, or split its range, or raise."""
        with self._changed:
            error, run.error = run.error, None
        assert error is not None
        host = str(run.hosts[0].address)
        fault = data_fault(error, host)
        if fault is not None:
            self._faulty(run, fault)
            return
        if run.rows > 1 and forbids_page(error):
            self.stats.retries += 1
            with self._changed:
                self._size.refused(run.rows)
            return
        if isinstance(error, FunctionFailure):
            raise ClusterError(
                f"{place_text(*run.range)} of {self._target.table}: {error.keyspace}."
                f"{error.function}() fails on a row: {message(error)}"
            ) from error
        if classify(error) is not Verdict.RETRY:
            # A scan sends no rows: an error that blames a row blames the statement here.
            raise translate_error(
                error, where=self._target.where, user=self._target.user
            ) from error
        if run.tries >= self._options.retries_max:
            raise ReadFailed(
                f"{place_text(*run.range)} of {self._target.table}: a page was requested "
                f"{run.tries + 1} times, the last time with: {message(error)}"
            ) from error
        self.stats.retries += 1
        self._on_trouble(f"{place_text(*run.range)}: {host}: {message(error)}")
        self._target.reader.reconnect()
        with self._changed:
            run.tries += 1
            run.hosts = run.hosts[1:] + run.hosts[:1]
            if isinstance(error, _TOO_MUCH):
                run.brake.too_much(run.brake.least(self._size.rows))
                if run.tries >= SPLIT_TRIES:
                    self._split(run)
            run.due = time.monotonic() + backoff_s(run.tries, self._jitter)

    def _split(self, run: RangeRun) -> None:
        """Keep only the first half of the rest of a run; the second becomes another run."""
        halves = run.halves()
        if halves is None:
            return
        run.range, second = halves
        # It has its own budget of tries, but is split at once if it fares no better.
        rest = RangeRun(second, tries=SPLIT_TRIES - 1, brake=Brake(run.brake.rows))
        self._runs.insert(self._runs.index(run) + 1, rest)
        self.stats.splits += 1

    # -- unreadable data, in the consumer's thread

    def _faulty(self, run: RangeRun, fault: ReadFault) -> None:
        """Handle a read that the data may have failed: read less at once, or give the range up.

        All pages of the run were handed out before.
        """
        self.stats.retries += 1
        self._on_trouble(f"{place_text(*run.range)}: {fault.nodes}: {fault.reason}")
        replicas = len(run.hosts)
        with self._changed:
            run.tries += 1
            run.faults += 1
            run.hosts = run.hosts[1:] + run.hosts[:1]
            self._narrowing.failed()
            halves = run.halves() if self._narrowing.may_cut(fault) else None
            fresh = run.faults == 1 and not run.suspect
            if fault.by_amount and run.rows > 1 and (fresh or halves is None):
                run.brake.rows = max(run.rows // SHRINK, 1)
                return
            if halves is not None and not fresh:
                self._narrow(run, *halves)
                return
            if halves is not None:
                run.due = time.monotonic() + backoff_s(run.tries, self._jitter)
                return
            run.confirmed += 1
            if not self._narrowing.is_unreadable(fault, run.confirmed, replicas):
                run.due = time.monotonic() + backoff_s(run.confirmed, self._jitter)
                return
        self._give_up(run, fault)

    def _narrow(self, run: RangeRun, first: TokenRange, second: TokenRange) -> None:
        """Read the two halves of a run separately. Call it with the lock."""
        if self._options.skip_failed and not self._options.in_order:
            # Behind all others, so that the widest ranges at fault are cut first.
            self._runs.remove(run)
            self._todo.append(Todo(first, run.next_state, suspect=True))
            self._todo.append(Todo(second, suspect=True))
            return
        run.range, run.suspect = first, True
        run.tries = run.faults = 0
        self._runs.insert(self._runs.index(run) + 1, RangeRun(second, suspect=True))

    def _give_up(self, run: RangeRun, fault: ReadFault) -> None:
        """Skip the rest of a run, or raise `RangeUnreadable`."""
        after, to = run.range
        reached = None if run.state is None else token_reached(run.state)
        if reached is not None and after < reached <= to:
            after = reached - 1  # everything before that partition was handed out
        partition = self._partition_of(TokenRange(after, to)) if to - after == 1 else ""
        missing = MissingRange(
            after, to, partition, run.state is not None, fault.nodes, fault.reason
        )
        if not self._options.skip_failed:
            raise RangeUnreadable(
                f"{missing.place} of {self._target.table} cannot be read: {missing.nodes}: "
                f"{missing.reason}. {fault.advice}, or skip what cannot be read with "
                f"{job_option('skip-failed-ranges')}"
            )
        self.missing.append(missing)
        with self._changed:
            self._runs.remove(run)
