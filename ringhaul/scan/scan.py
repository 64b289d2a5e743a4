"""Read token ranges page by page: the next page is on its way while this one is decoded.

Two threads have a part in a scan. The driver's puts each page that comes into the queue of its
range and asks for the next one at once, if there is room. The consumer's, in `batches`, decodes
pages and deals with errors. What both touch is under one lock; what is asked for next is decided
in one place, `_requests`.

An error is tried again from the last paging state, after a pause, at another replica. A read that
took too long is tried with half the rows, and if that does not help with half the range: where a
long stretch has only deleted rows, or rows that a filter drops, no page size is small enough.

A read that fails for what the data are is not waited for: its range is narrowed down to what cannot
be read (`narrowing`), and that is an error with its place, or is left out and listed.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

import pyarrow as pa
from cassandra import OperationTimedOut, ReadFailure, ReadTimeout
from cassandra.pool import Host
from cassandra.protocol import OverloadedErrorMessage
from cassandra.query import PreparedStatement

from ringhaul.breadcrumb import TRAIL
from ringhaul.cluster.errors import tell
from ringhaul.dataplane import latency
from ringhaul.dataplane.pacing import Leave, free
from ringhaul.dataplane.retry import Verdict, backoff_s, classify, message
from ringhaul.errors import ClusterError, Transient
from ringhaul.output.missing import MissingRange, place_text
from ringhaul.scan.cursor import Rest, pack_cursor, token_reached, unpack_cursor
from ringhaul.scan.faults import ReadFault, data_fault
from ringhaul.scan.narrowing import SHRINK, Narrowing
from ringhaul.scan.pages import Page, PageReader
from ringhaul.scan.ranges import TokenRange, split_range
from ringhaul.scan.ring import replicas_of
from ringhaul.scan.sizing import FIRST_ROWS, Brake, PageSize

#: How often `tick` is called while the scan waits.
TICK_S = 0.2
#: The driver's own time-out comes first; a request without an answer this long after it is lost.
LATE_S = 3.0
#: Reads of a range that took too long, one after the other, before it is split.
SPLIT_TRIES = 3
#: Errors that say that the read was too much at once.
_TOO_MUCH = (ReadTimeout, ReadFailure, OperationTimedOut, OverloadedErrorMessage)


class ReadFailed(Transient):
    """A page was asked for as often as allowed; the unit will be tried again later."""


class RangeUnreadable(ClusterError):
    """No replica can read a range, however often and however little of it is asked for."""


def ignore(_text: str) -> None:
    """Nobody wants to hear of it."""


def unnamed(_tokens: TokenRange) -> str:
    """The partition is not known."""
    return ""


class Decoder(Protocol):
    """What makes rows of a page."""

    def decode(self, body: bytes) -> pa.RecordBatch:
        """The rows of the body of a RESULT message of kind Rows."""


class ScanTarget(NamedTuple):
    """Where rows come from: what a worker process keeps open from unit to unit."""

    reader: PageReader
    #: SELECT ... WHERE token(...) > ? AND token(...) <= ?
    prepared: PreparedStatement
    keyspace: str
    table: str = "the table"  #: for messages
    where: str = ""  #: the cluster's addresses, for messages
    user: str = ""


@dataclass(frozen=True, kw_only=True)
class ScanOptions:
    """Bounds of one scan."""

    consistency: int
    request_timeout_s: float = 12.0
    page_bytes: int = 2 << 20  #: what pages are sized for; see `sizing`
    page_rows_first: int = FIRST_ROWS  #: rows of the first page
    in_flight: int = 2  #: ranges that are read at once
    pages_ahead: int = 2  #: pages of a range that wait, or are on their way, at most
    retries_max: int = 10  #: tries again of one page before the unit is given back
    in_order: bool = False  #: rows in the order of their tokens
    skip_failed: bool = False  #: what no replica can read is left out: see `RangeScan.missing`


@dataclass
class ScanStats:
    """What a scan did so far. Pages and rows count once they are handed out."""

    pages: int = 0
    bytes: int = 0
    rows: int = 0
    retries: int = 0
    splits: int = 0
    latencies: Counter[int] = field(default_factory=Counter)  #: bucket (latency.py) -> pages


class _Arrival(NamedTuple):
    page: Page
    latency_us: int


@dataclass(eq=False)
class _Run:
    """One range, from its first request to its last page."""

    range: TokenRange
    state: bytes | None = None  #: what was handed out ends here
    next_state: bytes | None = None  #: what was asked for and has come ends here
    ended: bool = False  #: its last page has come
    pages: deque[_Arrival] = field(default_factory=deque)
    error: BaseException | None = None
    request: int | None = None  #: number of the one that is unanswered
    sent_at: float = 0.0
    hosts: tuple[Host, ...] = ()
    tries: int = 0  #: that failed, since a page came
    faults: int = 0  #: of these, the reads that failed for what the data are
    confirmed: int = 0  #: of these, the reads of what cannot be cut any further
    suspect: bool = False  #: cut from a range that could not be read
    rows: int = 0  #: that were asked for last
    brake: Brake = field(default_factory=Brake)
    due: float = 0.0  #: not asked again before


class _Todo(NamedTuple):
    """A range that waits to be begun."""

    range: TokenRange
    state: bytes | None = None
    suspect: bool = False


class RangeScan:
    """The rows of some token ranges; see the module. One consumer thread."""

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
        """`tick` is called between pages and, at least every `TICK_S`, while waiting; it raises
        to stop. `leave` says what may be asked for, in either thread. With a `cursor` of an earlier
        scan its rest is read, whatever `ranges` says. `on_trouble` is told, in words, of each read
        that failed. `partition_of` names the partition of a range of one token, or says "".
        """
        rests = [Rest(one) for one in ranges] if cursor is None else unpack_cursor(cursor)
        self.stats = ScanStats()
        #: What was left out, in the order in which it was found out.
        self.missing: list[MissingRange] = []
        self._narrowing = Narrowing(options.skip_failed)
        self._on_trouble, self._partition_of = on_trouble, partition_of
        # In token order: what was begun, and then what was not.
        self._runs: list[_Run] = []
        self._todo = deque(_Todo(*rest) for rest in rests)
        self._waiting = 0  # pages that were asked for and not handed out
        self._target = target
        self._decoder = decoder
        self._options = options
        self._tick, self._leave = tick, leave
        self._size = PageSize(options.page_bytes, options.page_rows_first)
        self._numbers = itertools.count()
        self._jitter = random.Random()
        self._closed = False
        self._changed = threading.Condition(threading.Lock())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, a batch for each page that has any.

        Raises `ReadFailed` (a page failed too often), `RangeUnreadable` (no replica can read some
        range, and none is to be left out), `ClusterError` (no row can be read), what the decoder
        says of a page that makes no sense, and what `tick` raises.
        """
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
        """What was not handed out yet; "" at the end."""
        with self._changed:
            begun = [Rest(run.range, run.state) for run in self._runs]
            return pack_cursor([*begun, *(Rest(one.range, one.state) for one in self._todo)])

    def close(self) -> None:
        """Ask for nothing more; answers that are on their way are dropped."""
        with self._changed:
            self._closed = True

    # -- what is asked for

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

    def _choose(self) -> _Run | None:
        """The first range that is to be asked for a page now.

        The first of all is never held up by what waits of others: in order, the consumer takes
        nothing else.
        """
        options = self._options
        if self._closed:
            return None
        if sum(run.request is not None for run in self._runs) >= self._leave().requests:
            return None
        unended = 0
        now = time.monotonic()
        full = self._waiting >= options.in_flight * options.pages_ahead
        for index, run in enumerate(self._runs):
            if run.ended:
                continue
            if unended >= options.in_flight:
                return None
            unended += 1
            if full and index:
                return None
            idle = run.request is None and run.error is None and run.due <= now
            if idle and len(run.pages) < options.pages_ahead:
                return run
        if not self._todo or unended >= options.in_flight or (full and self._runs):
            return None
        tokens, state, suspect = self._todo.popleft()
        self._runs.append(_Run(tokens, state, state, suspect=suspect))
        return self._runs[-1]

    def _begin(self, run: _Run) -> int:
        if not run.hosts:
            run.hosts = self._hosts(run.range)
        self._waiting += 1
        run.request = next(self._numbers)
        run.sent_at = time.monotonic()
        return run.request

    def _hosts(self, tokens: TokenRange) -> tuple[Host, ...]:
        """Who to ask for a range, in this order: its replicas, any of them first."""
        hosts = replicas_of(self._target.reader.session, self._target.keyspace, tokens.hi)
        up = [host for host in hosts if host.is_up is not False] or list(hosts)
        first = self._jitter.randrange(len(up))
        return tuple(up[first:] + up[:first])

    # -- what comes, in the driver's thread

    def _arrived(self, run: _Run, number: int, page: Page) -> None:
        with self._changed:
            if run.request != number:
                return  # it was given up
            run.request = None
            run.tries = run.faults = run.confirmed = 0
            run.next_state, run.ended = page.state, page.state is None
            self._size.saw(page.rows, len(page.body))
            run.brake.good(self._size.rows)
            latency_us = int((time.monotonic() - run.sent_at) * 1e6)
            run.pages.append(_Arrival(page, latency_us))
            self._changed.notify()
        self._send()

    def _erred(self, run: _Run, number: int, error: BaseException) -> None:
        with self._changed:
            if run.request == number:
                self._set_error(run, error)
                self._changed.notify()

    def _set_error(self, run: _Run, error: BaseException) -> None:
        self._waiting -= 1
        run.request = None
        run.error = error

    # -- what is handed out, in the consumer's thread

    def _take(self) -> tuple[_Run | None, _Arrival | None]:
        """A run with its next page, or without one if it erred; (None, None) after a while.

        The pages that came before an error come first.
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

    def _ready(self) -> _Run | None:
        """The first run that erred or has a page; in order, pages of the first of all only."""
        for index, run in enumerate(self._runs):
            if run.pages:
                if not (index and self._options.in_order):
                    return run
            elif run.error is not None:
                return run
        return None

    def _deliver(self, run: _Run, arrival: _Arrival, rows: int) -> None:
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
        """Time out what the driver forgot: on a node that stops answering its own time-out has
        been seen not to come, and the unit would wait for ever."""
        overdue_at = time.monotonic() - self._options.request_timeout_s - LATE_S
        for run in self._runs:
            if run.request is not None and run.sent_at < overdue_at:
                self._set_error(run, OperationTimedOut())

    def _failed(self, run: _Run) -> None:
        """Try a run's page again later, or its range in parts, or give up."""
        with self._changed:
            error, run.error = run.error, None
        assert error is not None
        host = str(run.hosts[0].address)
        fault = data_fault(error, host)
        if fault is not None:
            self._faulty(run, fault)
            return
        if classify(error) is not Verdict.RETRY:
            # There is no row to be at fault: what a write takes for one is the statement here.
            raise tell(error, where=self._target.where, user=self._target.user) from error
        if run.tries >= self._options.retries_max:
            raise ReadFailed(
                f"{place_text(*run.range)} of {self._target.table}: a page was asked for "
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

    def _split(self, run: _Run) -> None:
        """Read only the first half of what is left of the run; the second is another run."""
        halves = self._halves(run)
        if halves is None:
            return
        run.range, second = halves
        # It has a budget of its own, but is split at once if it fares no better.
        rest = _Run(second, tries=SPLIT_TRIES - 1, brake=Brake(run.brake.rows))
        self._runs.insert(self._runs.index(run) + 1, rest)
        self.stats.splits += 1

    @staticmethod
    def _halves(run: _Run) -> tuple[TokenRange, TokenRange] | None:
        """What is left of a run's range, cut in two; None where it cannot be cut.

        What has come of the run is of the first half: the cut is not before the partition that its
        paging state is in. Where that cannot be told the run stays as it is, as does one whose
        last partition is what takes so long.
        """
        after = None
        if run.next_state is not None:
            after = token_reached(run.next_state)
            if after is None or not run.range.lo < after <= run.range.hi:
                return None
        try:
            return split_range(run.range, after)
        except ValueError:
            return None

    # -- what cannot be read, in the consumer's thread

    def _faulty(self, run: _Run, fault: ReadFault) -> None:
        """A read failed for what the data may be: read less at once, or give the range up.

        The run's pages were all handed out.
        """
        self.stats.retries += 1
        self._on_trouble(f"{place_text(*run.range)}: {fault.nodes}: {fault.reason}")
        replicas = len(run.hosts)
        with self._changed:
            run.tries += 1
            run.faults += 1
            run.hosts = run.hosts[1:] + run.hosts[:1]
            self._narrowing.failed()
            halves = self._halves(run) if self._narrowing.may_cut(fault) else None
            fresh = run.faults == 1 and not run.suspect
            if fault.certain and run.rows > 1 and (fresh or halves is None):
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

    def _narrow(self, run: _Run, first: TokenRange, second: TokenRange) -> None:
        """Read the halves of a run, each by itself. With the lock."""
        if self._options.skip_failed and not self._options.in_order:
            # Behind all others, so that the widest of those at fault are cut first.
            self._runs.remove(run)
            self._todo.append(_Todo(first, run.next_state, suspect=True))
            self._todo.append(_Todo(second, suspect=True))
            return
        run.range, run.suspect = first, True
        run.tries = run.faults = 0
        self._runs.insert(self._runs.index(run) + 1, _Run(second, suspect=True))

    def _give_up(self, run: _Run, fault: ReadFault) -> None:
        """Leave out what is left of a run, or raise `RangeUnreadable`."""
        after, to = run.range
        reached = None if run.state is None else token_reached(run.state)
        if reached is not None and after < reached <= to:
            after = reached - 1  # what comes before that partition was handed out
        partition = self._partition_of(TokenRange(after, to)) if to - after == 1 else ""
        missing = MissingRange(
            after, to, partition, run.state is not None, fault.nodes, fault.reason
        )
        if not self._options.skip_failed:
            raise RangeUnreadable(
                f"{missing.place} of {self._target.table} cannot be read: {missing.nodes}: "
                f"{missing.reason}. {fault.advice}, or leave out what cannot be read with "
                "--skip-failed-ranges"
            )
        self.missing.append(missing)
        with self._changed:
            self._runs.remove(run)
