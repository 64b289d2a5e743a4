"""One unit of a query or a count, interrupted and continued; partials too large for the ledger."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from cassandra.cluster import Session

from ringhaul.cluster.driver_view import DriverView
from ringhaul.query.aggregate import Aggregation
from ringhaul.scan.ring import read_ring
from ringhaul.scan.spill import PartialTooLarge, unspill
from tests.integration.scan.rows import ROWS, WIDE_ROWS, Rows
from tests.integration.scan.units import (
    HALVES,
    MANY_GROUPS,
    NEVER,
    WIDE_RANGE,
    make_unit,
    names,
    token_of,
)


@pytest.mark.parametrize("seed", range(2))
def test_a_query_s_partials_count_each_row_once(
    cassandra_session: Session, rows: Rows, seed: int
) -> None:
    sql = (
        "SELECT p, count(*) AS n, count(v) AS of_v, sum(c) AS s, min(v) AS low, max(c) AS high "
        "FROM {table} WHERE c >= 2 GROUP BY p"
    )
    units = [make_unit(cassandra_session, rows, "query", sql, [half]) for half in HALVES]
    aggregation = Aggregation(units[0].job.select)
    whole = aggregation.partial()
    counts = [0, 0]
    for unit in units:
        outcome = unit.run_with_deaths(seed)
        assert unit.attempts > 1 and outcome.parts == []
        counts = [counts[0] + outcome.rows, counts[1] + outcome.rows_read]
        whole.merge(aggregation.unpack(unspill(outcome.extra, "")))
    wanted = rows.expected.filter(pc.field("c") >= 2)
    assert counts == [wanted.num_rows, ROWS]
    expected = wanted.group_by("p").aggregate(
        [([], "count_all"), ("v", "count"), ("c", "sum"), ("v", "min"), ("c", "max")]
    )
    found = whole.finish()
    # Sums are exact, as the text of a varint.
    expected = expected.rename_columns(["p", "n", "of_v", "s", "low", "high"]).cast(found.schema)
    assert found.sort_by("p") == expected.sort_by("p")


def test_a_query_in_the_middle_of_a_wide_partition(cassandra_session: Session, rows: Rows) -> None:
    sql = "SELECT count(*) AS n, sum(c) AS s FROM {table}"
    unit = make_unit(cassandra_session, rows, "query", sql, [WIDE_RANGE])
    unit.die(50_000)
    unit.die(150_000)
    outcome = unit.attempt()
    assert (outcome.rows, outcome.rows_read) == (WIDE_ROWS, WIDE_ROWS)
    partial = Aggregation(unit.job.select).unpack(unspill(outcome.extra, ""))
    assert partial.finish().to_pylist() == [{"n": WIDE_ROWS, "s": str(sum(range(WIDE_ROWS)))}]


def test_a_count_by_range_counts_each_row_once(cassandra_session: Session, rows: Rows) -> None:
    ring = tuple(
        (entry.token, "127.0.0.1")
        for entry in read_ring(DriverView(cassandra_session), rows.keyspace)
    )
    sql = "SELECT token(p) FROM {table}"
    unit = make_unit(cassandra_session, rows, "count", sql, HALVES, ring=ring)
    outcome = unit.run_with_deaths(0)
    assert unit.attempts > 1
    assert (outcome.rows, outcome.rows_read) == (ROWS, ROWS)
    keys = rows.expected["p"].to_pylist()
    tokens = {key: token_of(key) for key in set(keys)}
    expected = [0] * len(ring)
    ends = [token for token, _ in ring]
    for key in keys:
        place = next((i for i, end in enumerate(ends) if tokens[key] <= end), 0)
        expected[place] += 1
    assert pa.array(memoryview(outcome.extra).cast("q").tolist()).to_pylist() == expected


# -- partial results that are too large for the ledger


def test_a_large_partial_goes_to_a_file(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    folder = tmp_path / "spill"
    unit = make_unit(
        cassandra_session,
        rows,
        "query",
        MANY_GROUPS,
        [WIDE_RANGE],
        partial_bytes_max=2000,
        spill=str(folder),
    )
    outcome = unit.attempt()
    # Then the ledger gets only its name, and no cursor contained it either
    assert len(outcome.extra) < 100
    assert unit.cursor is None or len(unit.saved) <= 2000
    (name,) = names(folder)
    assert outcome.extra == b"\x01" + name.encode()
    # And the file has all of it
    partial = Aggregation(unit.job.select).unpack(unspill(outcome.extra, str(folder)))
    assert partial.groups_count == WIDE_ROWS
    # And a second attempt has a separate file, which is removed if it does not count
    late = unit.attempt(checkpoint_s=NEVER)
    assert len(names(folder)) == 2
    late.undo()
    assert names(folder) == [name]


def test_a_checkpoint_that_is_too_large_is_left_out(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    """The ledger's memory is bounded: the next attempt continues from the last stored one."""
    unit = make_unit(
        cassandra_session,
        rows,
        "query",
        MANY_GROUPS,
        [WIDE_RANGE],
        partial_bytes_max=30_000,
        spill=str(tmp_path),
    )
    unit.die(150_000)
    assert 0 < len(unit.saved) <= 30_000
    assert unit.counted[0] < 100_000
    outcome = unit.attempt()
    assert (outcome.rows, outcome.rows_read) == (WIDE_ROWS, WIDE_ROWS)
    partial = Aggregation(unit.job.select).unpack(unspill(outcome.extra, str(tmp_path)))
    assert partial.groups_count == WIDE_ROWS


def test_a_large_partial_without_a_folder_is_refused(
    cassandra_session: Session, rows: Rows
) -> None:
    unit = make_unit(
        cassandra_session, rows, "query", MANY_GROUPS, [WIDE_RANGE], partial_bytes_max=2000
    )
    with pytest.raises(PartialTooLarge, match=r"more than 2,000: group by fewer distinct values"):
        unit.attempt()
