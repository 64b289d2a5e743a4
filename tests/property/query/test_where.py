"""Three-valued logic and comparisons agree with DuckDB."""

from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ringhaul.query.exact_numbers import OPERATORS
from ringhaul.query.sql import condition_sql, parse_condition, parse_statement
from ringhaul.query.where import parse_where
from tests.property.query import oracle
from tests.unit.query.tables import ORDERS, kept

OPERATIONS = st.sampled_from(["=", "!=", "<>", "<", "<=", ">", ">="])


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def literal(name: str) -> st.SearchStrategy[str]:
    values: dict[str, st.SearchStrategy[str]] = {
        "total": oracle.integers.map(str),
        "small": st.integers(-128, 127).map(str),
        "price": oracle.prices.map(lambda p: f"{p:f}"),
        "weight": oracle.weights.map(lambda w: f"'{w!r}'"),
        "region": oracle.regions.map(quoted),
        "open": st.sampled_from(["true", "false"]),
        "at": oracle.moments.map(
            lambda m: f"'{oracle.moment_of(m).isoformat(' ', 'milliseconds')}'"
        ),
    }
    return values[name]


NAMES = st.sampled_from(["total", "small", "price", "weight", "region", "open", "at"])


@st.composite
def simple(draw: Any) -> str:
    column = draw(NAMES)
    value = literal(column) | st.just("null")
    name = f'"{column}"'
    form = draw(st.integers(0, 7))
    negated = draw(st.sampled_from(["", "not "]))
    if form == 0:
        return f"{name} is {negated}null"
    if form == 1:
        values = draw(st.lists(value, min_size=1, max_size=3))
        return f"{name} {negated}in ({', '.join(values)})"
    if form == 2 and column != "open":
        return f"{name} {negated}between {draw(value)} and {draw(value)}"
    if form == 3:
        return f"{draw(value)} {draw(OPERATIONS)} {name}"
    if form == 4:
        pattern = draw(st.text("ab%_é.", max_size=4))
        return f"region {negated}like {quoted(pattern)}"
    if form == 5:
        pair = draw(st.sampled_from([("total", "small"), ("total", "price"), ("small", "weight")]))
        return f"{pair[0]} {draw(OPERATIONS)} {pair[1]}"
    if form == 6:
        return f"open is {negated}{draw(st.sampled_from(['true', 'false']))}"
    return f"{name} {draw(OPERATIONS)} {draw(value)}"


conditions = st.recursive(
    simple() | st.sampled_from(["open", "true", "false", "null"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda parts: f"({parts[0]}) {parts[1]} {parts[2]}"
        ),
        inner.map(lambda part: f"not ({part})"),
    ),
    max_leaves=5,
)


@given(
    conditions,
    st.sampled_from(
        ["", ";", " ALLOW FILTERING", " allow filtering ;", " -- why */ not", " /* x */"]
    ),
)
def test_a_condition_is_spelled_as_it_was_read(condition: str, end: str) -> None:
    tree = parse_condition(condition + end)
    assert tree is not None
    assert parse_condition(condition_sql(tree)) == tree
    # And something may follow it.
    assert (
        parse_statement(f"SELECT 1 FROM t WHERE {condition_sql(tree)} LIMIT 1").args["where"].this
        == tree
    )


@settings(max_examples=150)
@given(oracle.rows, st.lists(conditions, min_size=1, max_size=4))
def test_the_rows_are_those_of_duckdb(table: list[tuple[Any, ...]], found: list[str]) -> None:
    batch = oracle.our_batch(table)
    with oracle.duck(table) as connection:
        for condition in found:
            predicate = parse_where(condition, ORDERS).predicate
            assert predicate is not None
            ours = predicate.evaluate(batch).to_pylist()
            theirs = connection.execute(
                f"SELECT ({condition}) FROM shop.orders ORDER BY n"
            ).fetchall()
            assert ours == [value for (value,) in theirs], condition


@given(
    st.lists(
        st.decimals(allow_nan=False, allow_infinity=False)
        | st.decimals(-10, 10, places=60)
        | st.integers(-3, 3).map(Decimal),
        min_size=1,
        max_size=8,
    ),
    OPERATIONS,
)
def test_exact_numbers_compare_by_value(values: list[Decimal], operation: str) -> None:
    wanted = values[0]
    compare = OPERATORS[operation.replace("<>", "!=")]
    assert kept(f"price {operation} '{wanted}'", price=[str(v) for v in values]) == [
        place for place, value in enumerate(values) if compare(value, wanted)
    ]
    if operation == "=":
        others = ", ".join(f"'{value}'" for value in values[:3])
        assert kept(f"price in ({others})", price=[str(v) for v in values]) == [
            place for place, value in enumerate(values) if value in values[:3]
        ]
