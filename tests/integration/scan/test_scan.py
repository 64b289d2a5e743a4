"""Every row of a table is returned exactly once, for any pages, ranges and threads."""

from __future__ import annotations

import random
import threading
import time
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from producer.local.stack import Endpoints
from ringhaul.cluster.driver_view import DriverView
from ringhaul.cql.tokens import murmur3_tokens
from ringhaul.dataplane.pacing import FREE, Leave
from ringhaul.errors import ClusterError
from ringhaul.scan.cursor import token_reached, unpack_cursor
from ringhaul.scan.options import ScanOptions, ScanTarget
from ringhaul.scan.pages import Page, PageReader
from ringhaul.scan.ranges import (
    FULL_RING,
    MAX_TOKEN,
    TokenRange,
    pack_ranges,
    plan_ranges,
    unpack_ranges,
)
from ringhaul.scan.ring import read_ring
from ringhaul.scan.scan import RangeScan
from tests.integration.scan.rows import (
    ROWS,
    WIDE,
    WIDE_ROWS,
    Rows,
    by_key,
    decoder,
    make_table,
    table_of,
)
from tests.services import patient_cluster

WIDE_TOKEN = int(murmur3_tokens(pa.array([WIDE.to_bytes(8, "big", signed=True)], pa.binary()))[0])


def options(**changes: int | bool | float) -> ScanOptions:
    return ScanOptions(consistency=ConsistencyLevel.LOCAL_ONE, **changes)  # type: ignore[arg-type]


def even_ranges(count: int) -> list[TokenRange]:
    units = plan_ranges([], [], units_min=count, bytes_per_unit=1)
    return [unit.ranges[0] for unit in units]


def slice_with(rows: Rows, lo: int, hi: int) -> pa.Table:
    """Return the rows whose token is within (lo, hi]."""
    keys = pa.array([key.to_bytes(8, "big", signed=True) for key in rows.expected["p"].to_pylist()])
    tokens = murmur3_tokens(keys.cast(pa.binary()))
    return rows.expected.filter(pa.array((tokens > lo) & (tokens <= hi)))


@pytest.mark.parametrize("in_flight", [1, 2, 4])
@pytest.mark.parametrize("page_bytes", [20_000, 1 << 20])
@pytest.mark.parametrize("in_order", [False, True])
def test_a_scan_returns_all_rows_once(
    rows: Rows, target: ScanTarget, in_flight: int, page_bytes: int, in_order: bool
) -> None:
    scan = RangeScan(
        target,
        even_ranges(7),
        decoder(),
        options(in_flight=in_flight, page_bytes=page_bytes, in_order=in_order),
    )
    found = table_of(scan.batches())
    assert by_key(found) == rows.expected
    assert scan.cursor() == ""
    assert scan.stats.rows == ROWS
    assert scan.stats.pages == sum(scan.stats.latencies.values()) >= 7
    assert (scan.stats.retries, scan.stats.splits) == (0, 0)
    tokens = found["t"].to_numpy()
    if in_order or in_flight == 1:
        assert (np.diff(tokens.astype(object)) >= 0).all()


@pytest.mark.parametrize("rows_of_page", [1, 2, 3, 10, 11])
def test_pages_of_few_rows(rows: Rows, target: ScanTarget, rows_of_page: int) -> None:
    lo, hi = -(2**56), 2**56
    scan = RangeScan(
        target, [TokenRange(lo, hi)], decoder(), options(page_bytes=1, page_rows_first=rows_of_page)
    )
    scan._size.saw = lambda rows, size: None  # type: ignore[method-assign]
    found = by_key(table_of(scan.batches()))
    expected = slice_with(rows, lo, hi)
    assert 100 < len(expected) < 2000
    assert found == expected
    assert scan.stats.pages >= len(expected) / rows_of_page


def test_pages_have_about_the_target_size(rows: Rows, target: ScanTarget) -> None:
    sizes = []

    class Measuring:
        def decode(self, body: bytes) -> pa.RecordBatch:
            sizes.append(len(body))
            return decoder().decode(body)

    token_range = TokenRange(WIDE_TOKEN - 1, WIDE_TOKEN)
    scan = RangeScan(target, [token_range], Measuring(), options(page_bytes=300_000))
    assert sum(batch.num_rows for batch in scan.batches()) == WIDE_ROWS
    assert all(200_000 < size < 310_000 for size in sizes[4:-1])
    assert scan.stats.bytes == sum(sizes)


def test_protocol_v4(rows: Rows, endpoints: Endpoints) -> None:
    cluster = patient_cluster(
        endpoints.contact_points,
        port=endpoints.port,
        protocol_version=4,
    )
    try:
        target = rows.target(cluster.connect())
        found = table_of(RangeScan(target, [FULL_RING], decoder(), options()).batches())
    finally:
        cluster.shutdown()
    assert by_key(found) == rows.expected


def test_the_first_session_still_returns_rows(
    cassandra_session: Session, rows: Rows, target: ScanTarget
) -> None:
    bounds = (WIDE_TOKEN - 1, WIDE_TOKEN)
    statement = target.prepared.bind(bounds)
    statement.fetch_size = 10
    row = cassandra_session.execute(statement).one()
    assert row is not None
    assert (row.p, row.c) == (WIDE, 0)


@pytest.mark.parametrize("seed", range(4))
def test_a_resumed_scan_returns_all_rows_once(rows: Rows, target: ScanTarget, seed: int) -> None:
    """The rows before a cursor and after it are all rows, each once."""
    random_ = random.Random(seed)
    scan_options = options(page_bytes=40_000, in_flight=random_.choice([1, 2, 4]))
    spec = pack_ranges(even_ranges(5))
    cursor: str | None = None
    found: list[pa.RecordBatch] = []
    while cursor != "":
        scan = RangeScan(target, unpack_ranges(spec), decoder(), scan_options, cursor=cursor)
        batches: Any = scan.batches()
        for _ in range(random_.randrange(25)):
            batch = next(batches, None)
            if batch is None:
                break
            found.append(batch)
        cursor = scan.cursor()
        batches.close()
        left = [rest.range for rest in unpack_cursor(cursor)]
        assert all(one.hi <= after.lo for one, after in pairwise(left))
    assert by_key(table_of(found)) == rows.expected


def test_the_units_of_a_plan_cover_all_rows(
    cassandra_session: Session, rows: Rows, target: ScanTarget
) -> None:
    ring = read_ring(DriverView(cassandra_session), rows.keyspace)
    (host,) = cassandra_session.cluster.metadata.all_hosts()
    assert {entry.owner for entry in ring} == {str(host.host_id)}
    assert all(entry.replicas == (str(host.host_id),) for entry in ring)
    assert ring == sorted(ring)
    sizes = DriverView(cassandra_session).estimates(rows.keyspace, rows.table)
    units = plan_ranges(ring, sizes, units_min=6, bytes_per_unit=1 << 30)
    assert len(units) == 6
    found = [
        batch
        for unit in units
        for batch in RangeScan(target, unit.ranges, decoder(), options()).batches()
    ]
    assert by_key(table_of(found)) == rows.expected


def test_estimates_are_those_of_the_table(cassandra_session: Session) -> None:
    """System tables exist long enough to have estimates."""
    keyspace, table = cassandra_session.execute(
        "SELECT keyspace_name, table_name FROM system.size_estimates LIMIT 1"
    ).one()
    sizes = DriverView(cassandra_session).estimates(keyspace, table)
    assert sizes
    assert all(size.partitions >= 0 and size.partition_bytes >= 0 for size in sizes)
    assert DriverView(cassandra_session).estimates(keyspace, "no_such_table") == []


def test_the_token_of_a_real_paging_state(target: ScanTarget) -> None:
    """It is that of the page's last row, in a wide partition and between small ones."""
    seen = []

    class Spy(PageReader):
        def __init__(self) -> None:
            vars(self).update(vars(target.reader))

        distance_s = 0.0  # whatever the machine is busy with

        def request(self, *given, on_page, **named) -> None:  # type: ignore[no-untyped-def]
            def spy(page: Page) -> None:
                seen.append(page)
                on_page(page)

            super().request(*given, on_page=spy, **named)

    scan = RangeScan(
        target._replace(reader=Spy()), [FULL_RING], decoder(), options(page_bytes=30_000)
    )
    assert sum(batch.num_rows for batch in scan.batches()) == ROWS
    assert len(seen) > 50
    for page in seen[:-1]:
        assert page.state is not None
        last = decoder().decode(page.body).column("t")[-1].as_py()
        assert token_reached(page.state) == last
    assert seen[-1].state is None


@pytest.mark.parametrize("in_order", [False, True])
def test_no_more_pages_are_kept_than_allowed(target: ScanTarget, in_order: bool) -> None:
    """A slow consumer blocks the reads, in order or not."""
    requested = []

    class Counting(PageReader):
        def __init__(self) -> None:
            vars(self).update(vars(target.reader))

        distance_s = 0.0  # whatever the machine is busy with

        def request(self, *given, **named) -> None:  # type: ignore[no-untyped-def]
            requested.append(1)
            super().request(*given, **named)

    scan = RangeScan(
        target._replace(reader=Counting()),
        even_ranges(30),
        decoder(),
        options(page_bytes=20_000, in_flight=3, in_order=in_order),
    )
    for index, _ in enumerate(scan.batches()):
        if index < 40:
            time.sleep(0.01)
        assert len(requested) - scan.stats.pages <= 3 * 2 + 1


def test_requests_stay_within_the_current_limits(target: ScanTarget) -> None:
    """Limits on rows of a page and pages in flight apply as soon as they change."""
    requested: list[int] = []
    allowed = Leave(100, 1)
    lock, on_their_way, most = threading.Lock(), 0, 0

    class Counting(PageReader):
        def __init__(self) -> None:
            vars(self).update(vars(target.reader))

        distance_s = 0.0  # whatever the machine is busy with

        def request(self, *given, rows, on_page, **named) -> None:  # type: ignore[no-untyped-def]
            nonlocal on_their_way, most
            with lock:
                on_their_way += 1
                most = max(most, on_their_way)
            requested.append(rows)

            def came(page: Page) -> None:
                nonlocal on_their_way
                with lock:
                    on_their_way -= 1
                on_page(page)

            super().request(*given, rows=rows, on_page=came, **named)

    scan = RangeScan(
        target._replace(reader=Counting()),
        even_ranges(30),
        decoder(),
        options(in_flight=4),
        leave=lambda: allowed,
    )
    rows = 0
    for batch in scan.batches():
        assert batch.num_rows <= 100 or allowed is FREE
        rows += batch.num_rows
        if rows > 5000 and allowed is not FREE:
            assert (max(requested), most) == (100, 1)
            allowed = FREE
    assert rows == ROWS
    assert max(requested) > 100 and most > 1


def test_an_empty_table(cassandra_session: Session, keyspace: str) -> None:
    make_table(cassandra_session, keyspace, "empty")
    rows = Rows(keyspace, "empty", pa.table({}))
    scan = RangeScan(rows.target(cassandra_session), even_ranges(3), decoder(), options())
    assert list(scan.batches()) == []
    assert scan.stats.pages == 3


def test_rows_of_very_different_width(cassandra_session: Session, keyspace: str) -> None:
    """Pages shrink when rows get wide: a row of 2 MiB fills a page."""
    make_table(cassandra_session, keyspace, "wide_rows")
    insert = cassandra_session.prepare(
        f"INSERT INTO {keyspace}.wide_rows (p, c, v) VALUES (?, ?, ?)"
    )
    execute_concurrent_with_args(cassandra_session, insert, [(1, c, "x") for c in range(2000)])
    for c in range(2000, 2010):
        cassandra_session.execute(insert, (1, c, "x" * (2 << 20)))
    rows = Rows(keyspace, "wide_rows", pa.table({}))
    scan = RangeScan(
        rows.target(cassandra_session),
        [FULL_RING],
        decoder(),
        options(page_bytes=1 << 20, page_rows_first=4),
    )
    batches = list(scan.batches())
    found = table_of(batches)
    assert sorted(found["c"].to_pylist()) == list(range(2010))
    assert pc.sum(pc.binary_length(found["v"])).as_py() == 2000 + 10 * (2 << 20)


def test_a_page_with_a_warning(cassandra_session: Session, keyspace: str) -> None:
    """The server warns of a page that read more than 1000 tombstones."""
    make_table(cassandra_session, keyspace, "deleted")
    insert = f"INSERT INTO {keyspace}.deleted (p, c, v) VALUES (1, ?, 'x')"
    delete = f"DELETE FROM {keyspace}.deleted WHERE p = 1 AND c = ?"
    for statement, numbers in ((insert, range(3001)), (delete, range(1, 2000))):
        prepared = cassandra_session.prepare(statement)
        execute_concurrent_with_args(cassandra_session, prepared, [(c,) for c in numbers])
    rows = Rows(keyspace, "deleted", pa.table({}))
    scan = RangeScan(rows.target(cassandra_session), [FULL_RING], decoder(), options())
    found = table_of(scan.batches())
    assert sorted(found["c"].to_pylist()) == [0, *range(2000, 3001)]


def test_a_dropped_table(cassandra_session: Session, keyspace: str) -> None:
    make_table(cassandra_session, keyspace, "gone")
    target = Rows(keyspace, "gone", pa.table({})).target(cassandra_session)
    cassandra_session.execute(f"DROP TABLE {keyspace}.gone")
    scan = RangeScan(target, [FULL_RING], decoder(), options())
    with pytest.raises(ClusterError, match=r"gone|unconfigured|does not exist"):
        list(scan.batches())
    assert unpack_cursor(scan.cursor())[0].range == FULL_RING


def test_a_range_that_ends_at_the_last_token(target: ScanTarget, rows: Rows) -> None:
    lo = MAX_TOKEN - 2**60
    scan = RangeScan(target, [TokenRange(lo, MAX_TOKEN)], decoder(), options())
    assert by_key(table_of(scan.batches())) == slice_with(rows, lo, MAX_TOKEN)
