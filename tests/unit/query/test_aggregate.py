import math
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ringhaul.query.aggregate import Aggregation
from ringhaul.query.errors import QueryError
from ringhaul.query.results import numeric
from ringhaul.query.select import parse_select
from tests.cases import each
from tests.unit.query.tables import ORDERS, answer, batch_of, table_of

NAN = math.nan


def one(expression: str, **columns: list[Any]) -> Any:
    """The value of one aggregate of a batch; it is the same in one piece and row by row."""
    batch = batch_of(ORDERS, **columns)
    sql = f"select {expression} as x from shop.orders"
    (whole,) = answer(sql, batch)
    (by_row,) = answer(sql, *(batch.slice(i, 1) for i in range(batch.num_rows)))
    assert str(whole) == str(by_row)
    return whole["x"]


@each(
    ("expression", "column", "values", "result"),
    [
        ("count(*)", "total", [1, None], 2),
        ("count(1)", "total", [1, None], 2),
        ("count(total)", "total", [1, None], 1),
        ("count(tags)", "tags", [["a"], [], None], 2),
        ("count(took)", "took", [None], 0),
        ("sum(total)", "total", [2**63 - 1] * 5, str(5 * (2**63 - 1))),
        ("sum(total)", "total", [-(2**63)] * 5, str(-5 * 2**63)),
        ("sum(total)", "total", [2**63 - 1, -(2**63), None], "-1"),
        ("sum(small)", "small", [-128, 127], "-1"),
        ("sum(total)", "total", [None], None),
        ("sum(total * small)", "total", [5, None], "10"),
        ("sum(price)", "price", ["1.50", "0.5", None], "2.00"),
        ("sum(price)", "price", ["1E+3", "2E+2"], "1.2E+3"),
        ("sum(price)", "price", ["1E+30", "1E-50", "-1E+30"], "1E-50"),
        ("sum(price)", "price", ["9" * 76, "1"], "1" + "0" * 76),
        ("sum(price)", "price", ["1E-9", "-1E-9"], "0E-9"),
        ("sum(huge)", "huge", ["9" * 90, "1"], "1" + "0" * 90),
        ("avg(total)", "total", [2**62, 2**62 + 1], float(2**62)),
        ("avg(total)", "total", [1, 2, None], 1.5),
        ("avg(price)", "price", ["1.0", "1.5", "2.0", "2.25"], "1.68750000"),
        ("avg(price)", "price", ["1", "1", "2"], "1.333333"),
        ("avg(price)", "price", ["-1", "-1", "-0"], "-0.666667"),
        ("avg(huge)", "huge", ["1", "2"], "1.500000"),
        ("avg(weight)", "weight", [1.0, 2.0, None], 1.5),
        ("sum(weight)", "weight", [1e16, 1.0, 1.0, -1e16], 2.0),
        ("sum(weight)", "weight", [0.1] * 10, 1.0),
        ("sum(weight)", "weight", [math.inf, 1.0], math.inf),
        ("sum(weight)", "weight", [math.inf, -math.inf], NAN),
        ("sum(weight)", "weight", [NAN, 1.0], NAN),
        ("sum(weight)", "weight", [1.7e308, 1.7e308], math.inf),
        ("sum(weight)", "weight", [5e-324, 5e-324], 1e-323),
        ("sum(weight)", "weight", [None], None),
        ("min(weight)", "weight", [NAN, 1.0, None], 1.0),
        ("max(weight)", "weight", [NAN, 1.0, None], NAN),
        ("min(weight)", "weight", [NAN, None], NAN),
        ("max(weight)", "weight", [None, None], None),
        ("min(weight)", "weight", [0.0, -0.0], 0.0),
        ("min(weight)", "weight", [-0.0, 0.0], 0.0),
        ("max(weight)", "weight", [0.0, -0.0], 0.0),
        ("max(weight)", "weight", [-0.0, None], 0.0),
        ("min(price)", "price", ["2", "1.5", None], "1.5"),
        ("max(price)", "price", ["2", "1.5", None], "2.0"),
        ("max(price)", "price", ["9", "1E+1"], "10"),
        ("max(huge)", "huge", ["9" * 90, "-1"], "9" * 90),
        ("min(region)", "region", ["b", "é", "B", None], "B"),
        ("max(region)", "region", ["b", "é", "z", ""], "é"),
        ("max(region)", "region", [None, None], None),
        ("max(open)", "open", [False, None, True], True),
        ("min(data)", "data", [b"\xff", b"\x7f\x00"], b"\x7f\x00"),
        ("stddev(total)", "total", [1], None),
        ("stddev_pop(total)", "total", [1], 0.0),
        ("variance(total)", "total", [1, 3, None], 2.0),
        ("var_pop(total)", "total", [1, 3], 1.0),
        ("stddev_samp(total)", "total", [1, 3], math.sqrt(2)),
        ("count(distinct total)", "total", [1, 1, 2, None], 2),
        ("count(distinct price)", "price", ["1.0", "1", "1E+0", "10", "1E+1"], 2),
        ("count(distinct price * total)", "price", ["0.0", "0", "-0"], 1),
        ("count(distinct huge * total)", "huge", ["0", "0", "-1"], 2),
        ("min(huge * total)", "huge", ["0"], "0"),
        ("count(distinct weight)", "weight", [0.0, -0.0, NAN, NAN, 1.0], 3),
        ("approx_distinct(region)", "region", ["a", "b", "a", None], 2),
        ("approx_distinct(open)", "open", [True, False, True], 2),
        ("approx_distinct(region)", "region", [None], 0),
        ("median(total)", "total", [1, 2, 3, 50], 2.0),
        ("quantile(total, 1)", "total", [1, -2, 99], 99.0),
        ("quantile(total, 0)", "total", [1, -2, 99], -2.0),
        ("median(weight)", "weight", [-math.inf, 0.0, NAN], 0.0),
        ("median(weight)", "weight", [None], None),
        ("count(*) * 2 + 1", "total", [1, 2], 5),
        ("sum(total) / count(*)", "total", [1, 2], 1.5),
        ("sum(price) / count(*)", "price", ["1.0", "2.0"], "1.5000000"),
        ("sum(total) / 0", "total", [1], None),
        ("-max(total)", "total", [1], -1),
        ("max(total) - min(total)", "total", [1, 5], 4),
    ],
)
def test_one_group(expression: str, column: str, values: list[Any], result: Any) -> None:
    more = {"small": [2] * len(values), "total": [(-1) ** row * -3 for row in range(len(values))]}
    found = one(expression, **{**more, column: values})
    assert repr(found) == repr(result)


@each(
    ("values", "expected"),
    [
        ([1e308, -1e308], (math.inf, math.inf, math.sqrt(2) * 1e308, 1e308)),
        ([1.5e308, -1.5e308], (math.inf, math.inf, math.inf, 1.5e308)),  # the third is 2.1e308
        ([1e308] * 3, (0.0, 0.0, 0.0, 0.0)),
        ([1e200, -1e200, None], (math.inf, math.inf, math.sqrt(2) * 1e200, 1e200)),
        ([1e154, 3e154], (math.inf, 1e308, math.sqrt(2) * 1e154, 1e154)),
        ([1e-200, 2e150], (2e300, 1e300, math.sqrt(2) * 1e150, 1e150)),
        ([1e308], (None, 0.0, None, 0.0)),
        ([math.inf], (None, NAN, None, NAN)),
        ([NAN, 1.0], (NAN, NAN, NAN, NAN)),
        ([math.inf, 1.0, 1e308], (NAN, NAN, NAN, NAN)),
        ([math.inf, -math.inf], (NAN, NAN, NAN, NAN)),
        ([None, math.inf, math.inf], (NAN, NAN, NAN, NAN)),
    ],
)
def test_spreads_of_extremes(values: list[float | None], expected: tuple[float | None]) -> None:
    """As computed with exact fractions; pytest makes a warning an error."""
    functions = ("variance", "variance_pop", "stddev", "stddev_pop")
    columns = ", ".join(f"{function}(weight) {function}" for function in functions)
    others = [2.0, 4.0, None]  # another group, with small numbers
    batch = batch_of(ORDERS, weight=[*values, *others], region=["a"] * len(values) + ["b"] * 3)
    for size in (1, 2, batch.num_rows):
        pieces = [batch.slice(start, size) for start in range(0, batch.num_rows, size)]
        found = answer(f"select region, {columns} from shop.orders group by region", *pieces)
        large, small = (list(row.values())[1:] for row in found)
        assert large == [
            None if value is None else pytest.approx(value, rel=1e-14, nan_ok=True)
            for value in expected
        ]
        assert small == [2.0, 1.0, math.sqrt(2), 1.0]


def test_a_sum_beyond_doubles_does_not_hide_infinite_values() -> None:
    assert one("sum(weight)", weight=[-1e308, -1e308, math.inf]) == math.inf


def test_no_rows_give_one_row_without_group_by_and_none_with_it() -> None:
    empty = batch_of(ORDERS, total=[], region=[])
    columns = "count(*) c, sum(total) s, max(region) m, stddev(total) d, median(total) q"
    assert answer(f"select {columns} from shop.orders", empty) == [
        {"c": 0, "s": None, "m": None, "d": None, "q": None}
    ]
    assert answer(f"select {columns} from shop.orders") == answer(
        f"select {columns} from shop.orders", empty
    )
    assert answer(f"select {columns} from shop.orders group by region", empty) == []


def test_groups_of_several_columns_with_nulls_and_nan() -> None:
    batch = batch_of(
        ORDERS,
        region=["a", None, "a", None, "a", "b"],
        weight=[NAN, 0.0, NAN, -0.0, None, NAN],
        total=[1, 2, 3, 4, 5, 6],
    )
    rows = answer(
        "select region, weight, sum(total) s from shop.orders group by region, weight",
        batch,
        batch,
    )
    assert [str(list(row.values())) for row in rows] == [
        "['a', nan, '8']",
        "['a', None, '10']",
        "['b', nan, '12']",
        "[None, 0.0, '12']",
    ]


def test_decimals_group_by_numeric_value() -> None:
    batch = batch_of(ORDERS, price=["1.50", "1.5", "100", "1E+2", "-0.0", "0"])
    rows = answer("select price, count(*) n from shop.orders group by price", batch)
    assert rows == [{"price": "0", "n": 2}, {"price": "1.5", "n": 2}, {"price": "100", "n": 2}]


def test_where_having_order_and_limit() -> None:
    batch = batch_of(
        ORDERS,
        region=["a", "b", "c", "d", None, "e"],
        total=[5, 7, 7, None, 9, 100],
        at=[1, 2, 3, 4, 5, 6],
    )
    rows = answer(
        "select region r, sum(total) from shop.orders where total < 50 or total is null "
        "group by r having count(*) = 1 and max(at) < '1970-01-01T00:00:00.005Z' "
        "order by 2 desc, r desc limit 3",
        batch,
    )
    assert rows == [
        {"r": "c", "sum(total)": "7"},
        {"r": "b", "sum(total)": "7"},
        {"r": "a", "sum(total)": "5"},
    ]


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        ("2", ["b", "a", "d", "c"]),
        ("2 desc", ["d", "a", "b", "c"]),
        ("2 nulls first", ["c", "b", "a", "d"]),
        ("2 desc nulls first", ["c", "d", "a", "b"]),
        ("count(*), region desc", ["d", "c", "b", "a"]),
        ("s + 1 desc", ["d", "a", "b", "c"]),
    ],
)
def test_order(order: str, wanted: list[str]) -> None:
    batch = batch_of(ORDERS, region=["a", "b", "c", "d"], total=[9, -1, None, 10])
    sql = f"select region, sum(total) s from shop.orders group by region order by {order}"
    assert [row["region"] for row in answer(sql, batch)] == wanted


@pytest.mark.parametrize(
    ("column", "values", "wanted"),
    [
        # Cassandra orders addresses by their bytes, IPv4 between IPv6
        ("address", ["10.0.0.1", "9.0.0.1", "fe80::1", "::1", "100.0.0.1"], [3, 1, 0, 4, 2]),
        # timeuuid by time, whose lowest bits come first in the text
        (
            "tid",
            ["ffffffff-0000-11ee-8000-000000000000", "00000000-0001-11ee-8000-000000000000"],
            [0, 1],
        ),
        (
            "tid",
            ["00000000-0000-11ee-8000-000000000000", "00000000-0000-11ee-8000-0000000000ff"],
            [1, 0],
        ),
        # and uuid by version first
        (
            "uid",
            ["00000000-0000-4000-8000-000000000000", "ffffffff-0000-11ee-8000-000000000000"],
            [1, 0],
        ),
    ],
)
def test_an_order_that_differs_from_arrows(
    column: str, values: list[str], wanted: list[int]
) -> None:
    stored = values if column == "address" else [uuid.UUID(value).bytes for value in values]
    batch = batch_of(ORDERS, id=list(range(len(values))), **{column: stored})
    sql = f"select max(id) as n from shop.orders group by {column} order by {column}"
    assert [row["n"] for row in answer(sql, batch)] == wanted


def test_an_alias_in_an_expression_is_in_parentheses() -> None:
    batch = batch_of(ORDERS, total=[5, 3], small=[2, 1])
    (row,) = answer(
        "select sum(total + small) as a, sum(total) + sum(small) as s from shop.orders "
        "having s * 2 = 22 order by s * 2",
        batch,
    )
    assert row == {"a": "11", "s": "11"}
    rows = answer(
        "select region, max(total) - min(total) as d from shop.orders group by region "
        "order by 10 - d",
        batch_of(ORDERS, region=["a", "a", "b", "b"], total=[1, 2, 1, 9]),
    )
    assert [row["region"] for row in rows] == ["b", "a"]


def test_the_greatest_float_is_compared_with_a_float() -> None:
    batch = batch_of(ORDERS, ratio=[0.1, 0.05])
    (row,) = answer("select max(ratio) as m from shop.orders having max(ratio) = 0.1", batch)
    assert row["m"] == pytest.approx(0.1)


def test_order_by_prefers_an_alias_to_a_column_of_the_same_name() -> None:
    batch = batch_of(ORDERS, Case=["x", "x", "y"], region=["a", "b", "b"], total=[1, 5, 9])
    for alias in ('"Case"', "region", "Region", '"region"'):
        for direction, wanted in (("", [1, 2]), ("desc", [2, 1])):
            sql = f"select count(*) as {alias} from shop.orders group by region order by {alias}"
            rows = answer(f"{sql} {direction}", batch)
            assert [count for row in rows for count in row.values()] == wanted


def test_order_by_a_column_that_is_not_selected() -> None:
    batch = batch_of(ORDERS, region=["a", "b"], total=[1, 2])
    rows = answer("select region from shop.orders group by region order by sum(total) desc", batch)
    assert rows == [{"region": "b"}, {"region": "a"}]


def test_distinct_groups_by_all_columns() -> None:
    batch = batch_of(ORDERS, region=["b", "a", "b"], total=[1, 1, 1])
    rows = answer("select distinct region, total from shop.orders", batch)
    assert rows == [{"region": "a", "total": 1}, {"region": "b", "total": 1}]


def test_having_without_groups() -> None:
    batch = batch_of(ORDERS, total=[1])
    assert answer("select count(*) c from shop.orders having count(*) > 1", batch) == []
    assert answer("select count(*) c from shop.orders having c > 0.5", batch) == [{"c": 1}]


def test_results_have_the_arrow_types_of_their_cql_types() -> None:
    select = parse_select(
        "select uid, sum(total), min(day), avg(price) from shop.orders group by uid",
        lambda *_: ORDERS,
    )
    partial = Aggregation(select).partial()
    partial.update(batch_of(ORDERS, uid=[b"a" * 16], total=[1], day=[5], price=["1.0"]))
    table = partial.finish()
    assert table.schema.types == [cql_type.arrow() for cql_type in select.types]


def test_numbers_in_result_files() -> None:
    select = parse_select(
        "select region, sum(total) t, sum(price) p, max(huge) h from shop.orders group by region",
        lambda *_: ORDERS,
    )
    partial = Aggregation(select).partial()
    partial.update(
        batch_of(
            ORDERS,
            region=["a", "b"],
            total=[1, None],
            price=["1.5", "1E+2"],
            huge=["9" * 80, "1"],
        )
    )
    table = numeric(partial.finish(), select.types)
    assert table.schema.types == [
        pa.string(),
        pa.int64(),
        pa.decimal128(38, 1),
        pa.string(),
    ]
    assert table.column("p").to_pylist() == [Decimal("1.5"), Decimal("100.0")]
    assert table.column("h").to_pylist() == ["9" * 80, "1"]


def test_a_whole_number_beyond_decimals_has_no_exponent() -> None:
    select = parse_select("select max(huge) h from shop.orders", lambda *_: ORDERS)
    partial = Aggregation(select).partial()
    partial.update(batch_of(ORDERS, huge=["1" + "0" * 80]))
    assert numeric(partial.finish(), select.types).to_pylist() == [{"h": "1" + "0" * 80}]


def test_a_partial_knows_its_size() -> None:
    aggregation = Aggregation(
        parse_select("select total, count(*) from shop.orders group by total", lambda *_: ORDERS)
    )
    small, large = aggregation.partial(), aggregation.partial()
    small.update(batch_of(ORDERS, total=[1] * 5))
    large.update(batch_of(ORDERS, total=list(range(100_000))))
    assert (small.groups_count, large.groups_count) == (1, 100_000)
    assert large.nbytes > 1_000_000 > small.nbytes
    assert len(small.pack()) < 1000 < 50_000 < len(large.pack()) < 1_000_000


def test_update_returns_the_number_of_matching_rows() -> None:
    aggregation = Aggregation(
        parse_select("select count(*) from shop.orders where total > 1", lambda *_: ORDERS)
    )
    partial = aggregation.partial()
    assert partial.update(batch_of(ORDERS, total=[1, 2, 3], id=[1, 2, 3])) == 2
    assert partial.update(batch_of(ORDERS, total=[0])) == 0


def test_only_partials_of_the_same_query_merge() -> None:
    def of(sql: str) -> Aggregation:
        return Aggregation(parse_select(sql, lambda *_: ORDERS))

    first, other = (
        of("select sum(total) from shop.orders"),
        of("select sum(price) from shop.orders"),
    )
    with pytest.raises(ValueError, match="different queries"):
        first.partial().merge(other.partial())
    packed = first.partial().pack()
    with pytest.raises(ValueError, match="another query"):
        other.unpack(packed)
    with pytest.raises(ValueError, match="not a partial result"):
        first.unpack(b"x" * 100)
    for end in range(len(packed)):
        with pytest.raises(ValueError):
            first.unpack(packed[:end])


def test_a_number_too_long_is_an_error_that_takes_little_memory() -> None:
    with pytest.raises(QueryError, match="more than 100,000 digits"):
        answer(
            "select sum(price) from shop.orders",
            batch_of(ORDERS, price=["1E+999999999", "1E-999999999"]),
        )


def test_many_small_batches_are_many_rows() -> None:
    batch = batch_of(ORDERS, region=["a", "b"] * 500, total=[1, 2] * 500)
    sql = "select region, sum(total) s, count(*) n from shop.orders group by region"
    aggregation = Aggregation(parse_select(sql, lambda *_: ORDERS))
    partial = aggregation.partial()
    for _ in range(300):
        partial.update(batch)
    assert partial.finish().to_pylist() == [
        {"region": "a", "s": "150000", "n": 150000},
        {"region": "b", "s": "300000", "n": 150000},
    ]


def test_rows_without_columns_are_counted() -> None:
    aggregation = Aggregation(parse_select("select count(*) n from shop.orders", lambda *_: ORDERS))
    partial = aggregation.partial()
    for _ in range(3):
        partial.update(batch_of(ORDERS, id=[1] * 30_000))
    assert partial.finish().to_pylist() == [{"n": 90_000}]


@pytest.mark.parametrize("column", ["price", "weight", "ratio"])
def test_exact_groups_are_partition_keys(column: str) -> None:
    """Equal values that are different keys are different groups, across batches and partials."""
    values = ["1.5", "1.50", None] if column == "price" else [0.0, -0.0, float("nan"), None]
    sql = f"select {column}, count(*) n from shop.orders group by {column} order by 2 desc"
    select = parse_select(sql, lambda *_: ORDERS)
    aggregation = Aggregation(select, exact_keys=True)
    whole = aggregation.partial()
    for row, value in enumerate(values):
        part = aggregation.partial()
        part.update(batch_of(ORDERS, **{column: [value] * (row + 1) + values}))
        whole.merge(aggregation.unpack(part.pack()))
    found = whole.finish().to_pylist()
    wanted = [(value, row + 1 + len(values)) for row, value in enumerate(values)]
    assert [(repr(row[column]), row["n"]) for row in found] == [
        (repr(value), count) for value, count in reversed(wanted)
    ]
    # A GROUP BY of a query groups by numeric value.
    first, *_ = answer(sql, batch_of(ORDERS, **{column: values}))
    assert first["n"] == 2


def test_a_column_named_like_an_aggregate_is_distinct_from_it() -> None:
    odd = table_of({"id": "int", "a": "int", "b": "int", "a + b": "int"})
    rows = batch_of(odd, **{"a": [1], "b": [2], "a + b": [100]})
    found = answer('select sum(a + b), sum("a + b") from shop.orders', rows, table=odd)
    assert [dict(row) for row in found] == [{"sum(a + b)": "3", 'sum("a + b")': "100"}]
