"""Timeouts, lost connections and reads that are too large: each row still comes exactly once."""

from __future__ import annotations

import random
import time
from itertools import pairwise
from typing import Any

import pytest
from cassandra import (
    ConsistencyLevel,
    InvalidRequest,
    OperationTimedOut,
    ReadTimeout,
    Unavailable,
)

from producer.local.stack import Endpoints
from ringhaul.cluster.connect import ClusterConfig, close_session, open_session
from ringhaul.dataplane import retry
from ringhaul.errors import ClusterError, Transient
from ringhaul.scan import scan as scanning
from ringhaul.scan.cursor import unpack_cursor
from ringhaul.scan.options import ScanOptions, ScanTarget
from ringhaul.scan.pages import PageReader
from ringhaul.scan.ranges import FULL_RING, MAX_TOKEN, MIN_TOKEN, TokenRange
from ringhaul.scan.scan import RangeScan, ReadFailed
from tests.integration.scan.rows import Rows, by_key, decoder, table_of
from tests.proxy import proxied


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten pauses."""
    monkeypatch.setattr(retry, "BACKOFF_FIRST_S", 0.005)
    monkeypatch.setattr(retry, "BACKOFF_MAX_S", 0.05)


def options(**changes: int | bool | float) -> ScanOptions:
    return ScanOptions(consistency=ConsistencyLevel.LOCAL_ONE, **changes)  # type: ignore[arg-type]


class Troubled(PageReader):
    """Read from the real server, except for the faults that a subclass injects."""

    def __init__(self, reader: PageReader) -> None:
        vars(self).update(vars(reader))
        self.random = random.Random(7)

    def trouble(self, tokens: TokenRange, state: bytes | None, rows: int) -> Exception | None:
        return None

    def timeout_s(self, given_s: float) -> float:
        return given_s

    def request(  # type: ignore[no-untyped-def, override]
        self, prepared, tokens, state, *, rows, timeout_s, on_error, **named
    ) -> None:
        error = self.trouble(tokens, state, rows)
        if error is not None:
            on_error(error)
            return
        super().request(
            prepared,
            tokens,
            state,
            rows=rows,
            timeout_s=self.timeout_s(timeout_s),
            on_error=on_error,
            **named,
        )


class Impatient(Troubled):
    """Some requests get a timeout that no server can meet, so the driver drops them."""

    def timeout_s(self, given_s: float) -> float:
        return 0.0005 if self.random.random() < 0.15 else given_s


@pytest.mark.parametrize("in_flight", [1, 3])
def test_rows_come_once_despite_timeouts(rows: Rows, target: ScanTarget, in_flight: int) -> None:
    scan = RangeScan(
        target._replace(reader=Impatient(target.reader)),
        [TokenRange(MIN_TOKEN, -5), TokenRange(-5, 10**18), TokenRange(10**18, MAX_TOKEN)],
        decoder(),
        options(page_bytes=100_000, in_flight=in_flight),
    )
    assert by_key(table_of(scan.batches())) == rows.expected
    assert scan.stats.retries > 5


class NoPatience(Troubled):
    def timeout_s(self, given_s: float) -> float:
        return 0.0001


def test_retries_have_a_budget(target: ScanTarget) -> None:
    scan = RangeScan(
        target._replace(reader=NoPatience(target.reader)),
        [FULL_RING],
        decoder(),
        options(retries_max=4),
    )
    with pytest.raises(ReadFailed, match="a page was requested 5 times, the last time with"):
        list(scan.batches())
    assert issubclass(ReadFailed, Transient)
    # The range was split, but all of it is still to be read.
    left = [rest.range for rest in unpack_cursor(scan.cursor())]
    assert (left[0].lo, left[-1].hi) == FULL_RING
    assert scan.stats.splits >= 1


class TooWide(Troubled):
    """Reads of a large part of the ring, or of many rows, time out."""

    tokens_max = 2**61
    rows_max = 10**9

    def trouble(self, tokens: TokenRange, state: bytes | None, rows: int) -> Exception | None:
        if tokens.hi - tokens.lo > self.tokens_max or rows > self.rows_max:
            return ReadTimeout("as the test says", consistency=1)
        return None


@pytest.mark.parametrize("in_order", [False, True])
def test_a_range_that_is_too_large_is_split(rows: Rows, target: ScanTarget, in_order: bool) -> None:
    scan = RangeScan(
        target._replace(reader=TooWide(target.reader)),
        [FULL_RING],
        decoder(),
        options(page_bytes=100_000, in_order=in_order),
    )
    found = table_of(scan.batches())
    assert by_key(found) == rows.expected
    assert scan.stats.splits >= 7
    if in_order:
        tokens = found["t"].to_pylist()
        assert tokens == sorted(tokens)


class TooMuchLater(TooWide):
    """Ranges start well, and fail after the first pages."""

    def trouble(self, tokens: TokenRange, state: bytes | None, rows: int) -> Exception | None:
        return super().trouble(tokens, state, rows) if state is not None else None


@pytest.mark.parametrize("seed", range(3))
def test_a_range_is_split_after_some_pages(rows: Rows, target: ScanTarget, seed: int) -> None:
    """... and the scan is interrupted and resumed, with cursors of split ranges."""
    random_ = random.Random(seed)
    reader = TooMuchLater(target.reader)
    reader.tokens_max = 2**62
    cursor: str | None = None
    found = []
    splits = 0
    while cursor != "":
        scan = RangeScan(
            target._replace(reader=reader),
            [FULL_RING],
            decoder(),
            options(page_bytes=200_000, page_rows_first=5000),
            cursor=cursor,
        )
        batches: Any = scan.batches()
        for _ in range(random_.randrange(1, 20)):
            if (batch := next(batches, None)) is None:
                break
            found.append(batch)
        cursor = scan.cursor()
        batches.close()
        splits += scan.stats.splits
    assert by_key(table_of(found)) == rows.expected
    assert splits > 0


class Guarded(TooWide):
    """A guardrail forbids long pages; it applies to users only if the server checks log-ins."""

    def trouble(self, tokens: TokenRange, state: bytes | None, rows: int) -> Exception | None:
        if rows <= self.rows_max:
            return None
        return InvalidRequest(
            f"Guardrail page_size violated: Aborting query for table t, page size {rows} exceeds "
            f"fail threshold of {self.rows_max}."
        )


def test_pages_that_a_guardrail_forbids_are_made_smaller(rows: Rows, target: ScanTarget) -> None:
    reader = Guarded(target.reader)
    reader.rows_max = 300
    scan = RangeScan(target._replace(reader=reader), [FULL_RING], decoder(), options())
    assert by_key(table_of(scan.batches())) == rows.expected
    # Each of the ranges that are read at once may have requested a length before it was refused.
    assert 1 <= scan.stats.retries <= 4 + 8, "a length that was refused was requested again"
    reader.rows_max = 0
    scan = RangeScan(target._replace(reader=reader), [FULL_RING], decoder(), options())
    with pytest.raises(ClusterError, match="Guardrail page_size violated"):
        list(scan.batches())


class TooManyRows(TooWide):
    tokens_max = 2**64
    rows_max = 600


def test_pages_that_are_too_large_are_made_smaller(rows: Rows, target: ScanTarget) -> None:
    """A wide partition cannot be split: for a range of one, only the pages can shrink."""
    scan = RangeScan(
        target._replace(reader=TooManyRows(target.reader)),
        [FULL_RING],
        decoder(),
        options(page_rows_first=4000, page_bytes=100_000),
    )
    assert by_key(table_of(scan.batches())) == rows.expected
    assert scan.stats.retries > 0


class Refusing(Troubled):
    """Now and then there are too few replicas, or the driver knows none."""

    def trouble(self, tokens: TokenRange, state: bytes | None, rows: int) -> Exception | None:
        if self.random.random() < 0.2:
            return Unavailable("as the test says", consistency=1)
        return None


def test_unavailable_is_retried_without_smaller_pages(rows: Rows, target: ScanTarget) -> None:
    scan = RangeScan(
        target._replace(reader=Refusing(target.reader)), [FULL_RING], decoder(), options()
    )
    assert by_key(table_of(scan.batches())) == rows.expected
    assert scan.stats.retries > 0
    assert scan.stats.splits == 0


class Silent(Troubled):
    """The driver forgets some requests: neither callback is ever called."""

    requests = 0

    def request(self, *given, **named) -> None:  # type: ignore[no-untyped-def, override]
        self.requests += 1
        if self.requests not in (2, 6, 7):
            super().request(*given, **named)


def test_requests_that_the_driver_forgets(
    rows: Rows, target: ScanTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "LATE_S", 0.2)
    scan = RangeScan(
        target._replace(reader=Silent(target.reader)),
        [FULL_RING],
        decoder(),
        options(request_timeout_s=1.0),
    )
    assert by_key(table_of(scan.batches())) == rows.expected
    assert scan.stats.retries == 3


class Stop(Exception):
    """Raised by a test's tick."""


def test_tick_is_called_while_waiting_and_may_stop(target: ScanTarget) -> None:
    class Never(Troubled):
        def trouble(self, tokens: TokenRange, state: bytes | None, rows: int) -> Exception | None:
            return OperationTimedOut()

        def request(self, *given, **named) -> None:  # type: ignore[no-untyped-def, override]
            pass

    called: list[float] = []

    def tick() -> None:
        called.append(time.monotonic())
        if len(called) == 8:
            raise Stop

    scan = RangeScan(
        target._replace(reader=Never(target.reader)), [FULL_RING], decoder(), options(), tick=tick
    )
    with pytest.raises(Stop):
        list(scan.batches())
    # The median: any of them may be long on a busy machine
    pauses = sorted(after - before for before, after in pairwise(called))
    assert pauses[len(pauses) // 2] < 0.25 + 0.2


def test_connections_that_break_in_the_middle_of_a_page(rows: Rows, endpoints: Endpoints) -> None:
    """The scan notices the break at once and opens others, without waiting for a timeout."""
    with proxied((endpoints.contact_points[0], endpoints.port)) as (proxy, port):
        session = open_session(ClusterConfig(contact_points=("127.0.0.1",), port=port))
        try:
            scan = RangeScan(
                rows.target(session),
                [FULL_RING],
                decoder(),
                options(page_bytes=200_000, retries_max=2000, request_timeout_s=200.0),
            )
            found = []
            for index, batch in enumerate(scan.batches()):
                found.append(batch)
                if index in (4, 12):
                    proxy.cut_answers()
        finally:
            close_session(session)
    assert by_key(table_of(found)) == rows.expected
    assert proxy.cut >= 2
    assert scan.stats.retries >= 2
