"""LIMIT and PER PARTITION LIMIT of one unit and of several, whatever attempts die in between."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from cassandra.cluster import Session

from ringhaul.errors import UnitPaused
from ringhaul.scan.ranges import TokenRange
from ringhaul.scan.row_limit import Share, ShareLost
from ringhaul.scan.sinks import Given
from tests.integration.scan.rows import ROWS, Rows, by_key
from tests.integration.scan.units import (
    HALVES,
    NEVER,
    WIDE_RANGE,
    Unit,
    names,
    parts_of,
    read_parts,
    transform,
    unload,
)

LIMIT = 40_000


def limited(session: Session, rows: Rows, folder: Path, where: str) -> Unit:
    unit = unload(session, rows, folder, where=f"{where} LIMIT {LIMIT}")
    unit.job = replace(unit.job, limit=LIMIT, token_order=True)
    return unit


@pytest.mark.parametrize("where", ["", " WHERE c >= 1"])
def test_a_limit_takes_the_rows_that_the_server_returns(
    cassandra_session: Session, rows: Rows, tmp_path: Path, where: str
) -> None:
    unit = limited(cassandra_session, rows, tmp_path, where)
    # When attempts die, and the last one is paused with the last row
    unit.die(10_000)
    unit.die(25_000)
    with pytest.raises(UnitPaused):
        unit.attempt(LIMIT, of=UnitPaused)
    assert unit.counted[0] == LIMIT
    outcome = unit.attempt()
    # Then no row was read once more, and those written are the server's, in its order
    assert outcome.pages == 0
    assert LIMIT == outcome.rows <= outcome.rows_read < ROWS
    filtering = " ALLOW FILTERING" if where else ""
    query = f"SELECT p, c, v FROM {rows.keyspace}.{rows.table}{where} LIMIT {LIMIT}{filtering}"
    wanted = [tuple(row) for row in cassandra_session.execute(query, timeout=60)]
    found = read_parts(tmp_path, parts_of(outcome)).to_pydict().values()
    assert list(zip(*found, strict=True)) == wanted


@pytest.mark.parametrize("where", ["", " WHERE c >= 1"])
def test_units_that_share_a_limit_write_exactly_as_many_rows(
    cassandra_session: Session, rows: Rows, tmp_path: Path, where: str
) -> None:
    # Given two units that share a LIMIT, as the ledger hands it out
    has: dict[int, int] = {}

    def reserve(number: int, wanted: int) -> Share:
        others = sum(rows for other, rows in has.items() if other != number)
        has[number] = max(has.get(number, 0), min(wanted, LIMIT - others))
        return Share(has[number], LIMIT - sum(has.values()))

    def share(number: int, ranges: TokenRange) -> Unit:
        unit = limited(cassandra_session, rows, tmp_path, where)
        unit.job = replace(unit.job, shares_limit=True, token_order=False)
        unit.number, unit.ranges = number, [ranges]
        unit.reserve = partial(reserve, number)
        return unit

    # The wide partition is in the second one.
    narrow, wide = sorted(HALVES, key=lambda half: half.lo < WIDE_RANGE.hi <= half.hi)
    first, second = share(0, narrow), share(1, wide)
    # When the first one dies twice, once without a checkpoint of its last rows
    first.die(10_000)
    first.die(18_000, checkpoint_s=NEVER)
    held = has[0]
    assert first.counted[0] < 18_000 <= held
    # And the second one takes what it left
    taken = second.attempt()
    assert taken.rows == LIMIT - held
    # Then the next attempt of the first writes the rows that were reserved, and ends
    outcome = first.attempt()
    assert (outcome.rows, taken.rows) == (held, LIMIT - held)
    assert outcome.rows_read < ROWS
    found = read_parts(tmp_path, parts_of(outcome) + parts_of(taken))
    assert found.num_rows == LIMIT
    expected = set(zip(*rows.expected.to_pydict().values(), strict=True))
    written = set(zip(*found.to_pydict().values(), strict=True))
    assert len(written) == LIMIT, "no row twice"
    assert written <= expected
    # And a unit that comes when nothing is left reads nothing
    late = share(7, wide).attempt()
    assert (late.rows, late.pages, late.parts) == (0, 0, [])


def test_rows_that_others_have_meanwhile_are_not_written(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    # Given a ledger that forgets, after the last page, what the unit had reserved
    requested: list[int] = []

    def reserve(wanted: int) -> Share:
        requested.append(wanted)
        has = min(wanted, LIMIT) if sum(one >= LIMIT for one in requested) < 2 else 10
        return Share(has, LIMIT - has if has < LIMIT and has != 10 else 0)

    unit = limited(cassandra_session, rows, tmp_path, "")
    unit.job = replace(unit.job, shares_limit=True)
    unit.reserve = reserve
    # Then the attempt fails, and leaves nothing
    with pytest.raises(ShareLost):
        unit.attempt(checkpoint_s=NEVER)
    assert requested[-1] == LIMIT
    assert names(tmp_path) == []


@pytest.mark.parametrize("most", [7, 50_000])
def test_each_partition_is_limited_whatever_the_pages_and_attempts(
    cassandra_session: Session, rows: Rows, tmp_path: Path, most: int
) -> None:
    unit = unload(cassandra_session, rows, tmp_path, where=f" PER PARTITION LIMIT {most}")
    unit.die(9_000)
    unit.die(20_000)
    outcome = unit.attempt()
    seen: dict[int, int] = {}
    first = []
    for key in rows.expected["p"].to_pylist():  # sorted by key and row
        seen[key] = seen.get(key, 0) + 1
        first.append(seen[key] <= most)
    wanted = rows.expected.filter(pa.array(first))
    assert by_key(read_parts(tmp_path, parts_of(outcome))) == wanted
    assert outcome.rows == outcome.rows_read == wanted.num_rows < ROWS


def test_a_limit_counts_rows_before_transforms(
    cassandra_session: Session, rows: Rows, tmp_path: Path
) -> None:
    def evens(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.equal(pc.bit_wise_and(batch.column("c"), 1), 0))

    unit = limited(cassandra_session, rows, tmp_path, "")
    transform(unit, "t:evens", evens)
    unit.die(3_000)
    outcome = unit.attempt()
    assert outcome.given == Given(LIMIT, dropped=LIMIT - outcome.rows)
    assert outcome.rows == LIMIT // 2
