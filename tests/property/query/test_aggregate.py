"""Aggregates against DuckDB and Python, for any split of rows and any order of merging."""

import math
import statistics
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringhaul.query.aggregate import Aggregation, Partial
from ringhaul.query.select import parse_select
from tests.property.query import oracle
from tests.unit.query.tables import ORDERS, answer, batch_of

KEYS = ["id", "region", "price", "weight", "open", '"at"']
EXACT = [
    "count(*)",
    "count(total)",
    "count(distinct region)",
    "count(distinct price)",
    "count(distinct weight)",
    "sum(total)",
    "sum(small)",
    "sum(price)",
    "min(total)",
    "max(total)",
    "min(price)",
    "max(price)",
    "min(weight)",
    "max(weight)",
    "min(region)",
    "max(region)",
    'min("at")',
    'max("at")',
    "max(open)",
]
NEAR = ["avg(total)", "avg(small)", "stddev(small)", "stddev_pop(small)", "var_pop(small)"]


def plain(value: Any, name: str) -> Any:
    """A value in the form in which both sides are compared."""
    if value is None:
        return None
    if name == "weight" or name in ("min(weight)", "max(weight)"):
        return "nan" if math.isnan(value) else value + 0.0
    if "price" in name or name.startswith("sum"):
        return value if name.startswith("count") else Decimal(value)
    if "at" in name.split('"'):
        return value.replace(tzinfo=None)
    return value


@settings(max_examples=100)
@given(
    oracle.rows,
    st.lists(st.sampled_from(KEYS), max_size=2, unique=True),
    st.lists(st.sampled_from(EXACT), min_size=1, max_size=4, unique=True),
)
def test_exact_aggregates_are_those_of_duckdb(
    table: list[tuple[Any, ...]], keys: list[str], expressions: list[str]
) -> None:
    items = [*keys, *expressions]
    named = ", ".join(f"{item} AS c{place}" for place, item in enumerate(items))
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    sql = f"SELECT {named} FROM shop.orders{group}"
    batch = oracle.our_batch(table)
    ours = answer(sql, batch.slice(0, 7), batch.slice(7))
    with oracle.duck(table) as connection:
        theirs = connection.execute(sql).fetchall()

    def worth(row: Any) -> Any:
        return tuple(
            Fraction(value) if isinstance(value, Decimal) else value
            for value in (plain(v, item) for v, item in zip(row, items, strict=True))
        )

    found = [tuple(row.values()) for row in ours]
    assert sorted(repr(worth(row)) for row in found) == sorted(repr(worth(row)) for row in theirs)


@settings(max_examples=60)
@given(oracle.rows, st.sampled_from(NEAR))
def test_approximate_aggregates_are_those_of_duckdb(
    table: list[tuple[Any, ...]], expression: str
) -> None:
    sql = f"SELECT id, {expression} AS x FROM shop.orders GROUP BY id ORDER BY id"
    batch = oracle.our_batch(table)
    ours = answer(sql, batch.slice(0, 5), batch.slice(5, 5), batch.slice(10))
    with oracle.duck(table) as connection:
        theirs = connection.execute(sql).fetchall()
    assert [row["id"] for row in ours] == [row[0] for row in theirs]
    for row, (_, wanted) in zip(ours, theirs, strict=True):
        near = None if wanted is None else pytest.approx(wanted, rel=1e-12, abs=1e-12)
        assert row["x"] == near


QUERY = (
    "select id, open, count(*) n, count(total) m, sum(total) s, sum(price) p, avg(price) ap, "
    "avg(total) at, min(price), max(price), min(region), max(region), min(weight), max(weight), "
    "min(at), count(distinct region), count(distinct price), approx_distinct(total), "
    "approx_distinct(region), quantile(total, 0.9), median(weight) "
    "from shop.orders where small is null or small < 100 group by id, open"
)


@settings(max_examples=60)
@given(st.data())
def test_any_split_and_any_order_of_merging_give_the_same(data: st.DataObject) -> None:
    batch = oracle.our_batch(data.draw(oracle.rows))
    aggregation = Aggregation(parse_select(QUERY, lambda *_: ORDERS))
    whole = aggregation.partial()
    whole.update(batch)
    parts = []
    start = 0
    while start < batch.num_rows:
        count = data.draw(st.integers(1, batch.num_rows - start))
        part = aggregation.partial()
        part.update(batch.slice(start, count))
        parts.append(part)
        start += count
    parts.append(aggregation.partial())
    while len(parts) > 1:
        left: Partial = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        right: Partial = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        if data.draw(st.booleans()):
            right = aggregation.unpack(right.pack())
        left.merge(right)
        parts.append(left)
    assert str(parts[0].finish().to_pylist()) == str(whole.finish().to_pylist())


finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e290, max_value=1e290)


@given(st.lists(finite | st.floats(-1e6, 1e6), min_size=1, max_size=40), st.integers(1, 10))
def test_sums_of_floats_have_the_stated_error(values: list[float], size: int) -> None:
    batch = batch_of(ORDERS, weight=values)
    pieces = [batch.slice(start, size) for start in range(0, len(values), size)]
    (row,) = answer("select sum(weight) s from shop.orders", *pieces)
    true = math.fsum(values)
    assert abs(row["s"] - true) <= 1e-11 * math.fsum(map(abs, values))


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40), st.integers(1, 10))
def test_sums_of_floats_of_one_magnitude_are_correctly_rounded(
    values: list[float], size: int
) -> None:
    batch = batch_of(ORDERS, weight=values)
    pieces = [batch.slice(start, size) for start in range(0, len(values), size)]
    (row,) = answer("select sum(weight) s from shop.orders", *pieces)
    assert row["s"] == pytest.approx(math.fsum(values), rel=1e-15, abs=1e-18)


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=40),
    st.sampled_from([0.0, 1e3, 1e6]),
    st.integers(1, 10),
)
def test_spreads_have_the_stated_error(differences: list[float], centre: float, size: int) -> None:
    values = [centre + difference for difference in differences]
    batch = batch_of(ORDERS, weight=values)
    pieces = [batch.slice(start, size) for start in range(0, len(values), size)]
    (row,) = answer("select variance(weight) v from shop.orders", *pieces)
    true = float(statistics.variance(map(Fraction, values)))
    assert row["v"] == pytest.approx(true, rel=1e-9, abs=1e-9)


@given(st.lists(st.decimals(-(10**30), 10**30, places=12), min_size=1, max_size=20), st.data())
def test_sums_of_decimals_are_exact_at_the_greatest_scale(
    values: list[Decimal], data: st.DataObject
) -> None:
    scales = [data.draw(st.integers(0, 12)) for _ in values]
    texts = [f"{value:.{scale}f}" for value, scale in zip(values, scales, strict=True)]
    batch = batch_of(ORDERS, price=texts)
    (row,) = answer(
        "select sum(price) s, min(price) a, max(price) b from shop.orders",
        *(batch.slice(i, 3) for i in range(0, len(texts), 3)),
    )
    numbers = [Decimal(text) for text in texts]
    assert Fraction(row["s"]) == sum(map(Fraction, numbers))
    assert (Fraction(row["a"]), Fraction(row["b"])) == (min(numbers), max(numbers))
    for text in row.values():
        assert -Decimal(text).as_tuple().exponent == max(scales)  # type: ignore[operator]


@given(st.lists(st.integers(-(10**120), 10**120), min_size=1, max_size=20))
def test_sums_of_varints_are_exact(values: list[int]) -> None:
    batch = batch_of(ORDERS, huge=[str(value) for value in values])
    (row,) = answer(
        "select sum(huge) s, max(huge) m from shop.orders", batch.slice(0, 4), batch.slice(4)
    )
    assert (int(row["s"]), int(row["m"])) == (sum(values), max(values))


@settings(max_examples=30)
@given(st.integers(1, 2000), st.integers(0, 2**32))
def test_packed_partials_are_small_and_complete(groups: int, seed: int) -> None:
    values = [(seed + n * 7919) % 10**9 for n in range(groups * 3)]
    batch = batch_of(
        ORDERS, region=[f"region-{n % groups}" for n in range(groups * 3)], total=values
    )
    aggregation = Aggregation(
        parse_select(
            "select region, sum(total), min(total), max(total), avg(total) from shop.orders "
            "group by region",
            lambda *_: ORDERS,
        )
    )
    partial = aggregation.partial()
    partial.update(batch)
    packed = partial.pack()
    # Key of 8 to 11 bytes and its offset, three limbs, a count, two extremes; and the headers.
    assert len(packed) <= 4000 + groups * (15 + 6 * 8)
    assert aggregation.unpack(packed).finish() == partial.finish()
    assert isinstance(partial.finish(), pa.Table)
