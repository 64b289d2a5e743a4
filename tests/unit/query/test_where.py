import math
import uuid
from decimal import Decimal
from typing import Any

import pytest

from ringhaul.errors import EXIT_USAGE
from ringhaul.query.errors import QueryError
from ringhaul.query.where import parse_where
from tests.cases import each
from tests.unit.query.tables import ORDERS, kept, table_of

NIL = b"\0" * 16


@each(
    ("condition", "column", "values", "wanted"),
    [
        ("total = 2", "total", [1, 2, None], [1]),
        ("total <> 2", "total", [1, 2, None], [0]),
        ("2 < total", "total", [1, 2, 3], [2]),
        ("total between 2 and 3", "total", [1, 2, 3, 4], [1, 2]),
        ("total not between 2 and 3", "total", [1, 2, None, 4], [0, 3]),
        ("total in (1, 3, null)", "total", [1, 2, 3, None], [0, 2]),
        ("total not in (1, null)", "total", [1, 2, None], []),
        ("total is null", "total", [1, None], [1]),
        ("total = null", "total", [1, None], []),
        ("not (total > 1)", "total", [1, 2, None], [0]),
        ("total + 1 = 3", "total", [1, 2, None], [1]),
        ("total * 2 > 2.5", "total", [1, 2, None], [1]),
        ("total / 4 = 0.5", "total", [1, 2, None], [1]),
        ("total / 0 is null", "total", [1, 2], [0, 1]),
        ("-total = -9223372036854775807", "total", [1, 2**63 - 1], [1]),
        ("price = 1.5", "price", ["1.50", "1.5", "15E-1", "1.51", None], [0, 1, 2]),
        ("price > 1E+3", "price", ["1000", "1000.01", "1E+4"], [1, 2]),
        ("price in (1.5, '1E+3')", "price", ["1.50", "1000", "2", None], [0, 1]),
        ("price < 0.1", "price", ["0.1", "0.0999999999999999999999999999999999999999"], [1]),
        ("price * 3 = 0.3", "price", ["0.1", "0.10", "0.11"], [0, 1]),
        ("price in (-0.0)", "price", ["0", "0.00", "0E+3", "1"], [0, 1, 2]),
        ("price in (0)", "price", ["-0.0", "-0", "1"], [0, 1]),
        ("price * -1 in (0.00, 7)", "price", ["0.0", "-7", "1", None], [0, 1]),
        ("huge in (-0)", "huge", ["0", "1", None], [0]),
        ("huge * -1 in (0)", "huge", ["0", "1", None], [0]),
        ("huge * -1 not in (0)", "huge", ["0", "1", None], [1]),
        ("huge > 9223372036854775808", "huge", ["9223372036854775808", "9" * 90], [1]),
        ("weight = 0", "weight", [0.0, -0.0, 1.0], [0, 1]),
        ("weight in (0)", "weight", [0.0, -0.0, 1.0], [0, 1]),
        ("weight = NaN", "weight", [math.nan, 1.0], [0]),
        ("weight > 1e300", "weight", [math.nan, math.inf, 1.0, None], [0, 1]),
        ("weight <= infinity", "weight", [math.nan, math.inf, 1.0, None], [1, 2]),
        ("weight in ('NaN', 1)", "weight", [math.nan, math.inf, 1.0, None], [0, 2]),
        ("Infinity = weight", "weight", [math.inf, 1.0, None], [0]),
        ("-infinity = weight", "weight", [-math.inf, math.inf], [0]),
        ("NaN = weight", "weight", [math.nan, 1.0], [0]),
        ("ratio = 0.1", "ratio", [0.1, 0.2], [0]),
        ("open", "open", [True, False, None], [0]),
        ("not open", "open", [True, False, None], [1]),
        ("open is not true", "open", [True, False, None], [1, 2]),
        ("open = 'TRUE' or open is null", "open", [True, False, None], [0, 2]),
        ("region = 'o''brien'", "region", ["o'brien", "x"], [0]),
        ("region > 'z'", "region", ["z", "é", "zz"], [1, 2]),
        ("\"Case\" = 'x'", "Case", ["x", "X"], [0]),
        ("region like 'a%_c'", "region", ["abc", "ac", "a\n\nc", "éabc", None], [0, 2]),
        ("region not like '%.%'", "region", ["a.b", "ab", None], [1]),
        ("region like '10!%' escape '!'", "region", ["10%", "100"], [0]),
        (r"region like 'a\%'", "region", ["a\\b", "a%"], [0]),
        ("region ilike 'É%'", "region", ["éa", "ea"], [0]),
        ("at >= '2024-01-01'", "at", [1704067199999, 1704067200000], [1]),
        ("at < timestamp '2024-01-01T01:00:00+01:00'", "at", [1704067199999, 1704067200000], [0]),
        ("at = timestamp with time zone '2024-01-01'", "at", [1704067199999, 1704067200000], [1]),
        ("at >= date '2024-01-01'", "at", [1704067199999, 1704067200000], [1]),
        ("at < 1000", "at", [999, 1000], [0]),
        ("day = cast('1970-01-01' as date)", "day", [-1, 0], [1]),
        ("clock = time '00:00'", "clock", [0, 1], [0]),
        ("timestamp '2024-01-01' = timestamp '2024-01-01T00:00Z'", "at", [1], [0]),
        ("at = 9223372036854775807", "at", [2**63 - 1, 0], [0]),
        ("at in ('1970-01-01', -9223372036854775808)", "at", [0, -(2**63), 1], [0, 1]),
        ("day > '1969-12-31'", "day", [-1, 0], [1]),
        ("day in ('+5881580-07-11')", "day", [2**31 - 1, 0], [0]),
        ("clock <= '00:00:00.000000001'", "clock", [1, 2], [0]),
        ("uid = 00000000-0000-0000-0000-000000000000", "uid", [NIL, b"a" * 16], [0]),
        ("uid in ('00000000-0000-0000-0000-000000000000')", "uid", [NIL, b"a" * 16], [0]),
        ("uid = tid", "uid", [NIL, None], [0]),
        ("address = '2001:DB8:0::1'", "address", ["2001:db8::1", "10.0.0.1"], [0]),
        ("data = 0xFF00", "data", [b"\xff\x00", b""], [0]),
        ("data > 0x", "data", [b"\xff\x00", b"", None], [0]),
        ("code = 'x'", "code", ["x", "y"], [0]),
        ("tags is not null", "tags", [["a"], [], None], [0, 1]),
        ("took is null", "took", [None], [0]),
        ("total < weight", "total", [1, 2, None], []),
        ("1 = 1 and true", "total", [1, 2], [0, 1]),
        ("1 = 2 or null", "total", [1, 2], []),
        ("", "total", [1, 2], [0, 1]),
        ("total = 1 -- a remark", "total", [1, 2], [0]),
        ("orders.total = 1 allow filtering", "total", [1, 2], [0]),
    ],
)
def test_rows_that_meet_the_condition(
    condition: str, column: str, values: list[Any], wanted: list[int]
) -> None:
    more = {name: [None] * len(values) for name in ("weight", "total")}
    more["tid"] = [NIL] * len(values)
    assert kept(condition, **{**more, column: values}) == wanted


@each(
    ("condition", "message"),
    [
        ("totl = 1", "no column 'totl' in table shop.orders; did you mean 'total'?"),
        ("case = 'x'", "cannot read the query"),
        ('"Total" = 1', "no column 'Total' in table shop.orders; did you mean 'total'?"),
        ("total = 'x'", "column 'total' is bigint: 'x' is not a whole number"),
        ("total = 1.5", "column 'total' is bigint: 1.5 is not a whole number"),
        ("small = 128", "column 'small' is tinyint: 128 is outside -128..127"),
        ("price = 'x'", "column 'price' is decimal: \"x\" is not a decimal number"),
        ("ratio = 1e39", "column 'ratio' is float: \"1e39\" is outside the range of a float"),
        ("region = 5", "column 'region' is text: 5 is not text; write it in quotes: '5'"),
        ("code = 'é'", "column 'code' is ascii: 'é' is not ASCII"),
        ("open = 1", "column 'open' is boolean: 1 is neither true nor false"),
        ("at = 'soon'", "column 'at' is timestamp: \"soon\" is not a timestamp such as"),
        ("at > 20240101", "20240101 may be a date or milliseconds since 1970; write a date as"),
        ("at > '2024'", "these milliseconds as '1970-01-01T00:00:02.024Z'"),
        ("at in (20240101235959)", "20240101235959 may be a date or milliseconds since 1970"),
        ("at > date '2024-01-01T12:00'", '"2024-01-01T12:00" is not a date such as'),
        ("at > time '12:00'", "column 'at' is timestamp: TIME '12:00' is not a timestamp such as"),
        ("day > timestamp '2024-01-01'", "is date: TIMESTAMP '2024-01-01' is not a date such as"),
        ("region = date '2024-01-01'", "column 'region' is text: DATE '2024-01-01' is not text"),
        ("total = cast('5' as int)", "CAST('5' AS INT): casts cannot be answered"),
        ("region = 'a'::varchar(2)", "CAST('a' AS VARCHAR(2)): casts cannot be answered"),
        ("clock = cast('12:00:01.5' as time(0))", "casts cannot be answered"),
        ("day = try_cast('x' as date)", "TRY_CAST('x' AS DATE): casts cannot be answered"),
        ("NaN = NaN", "NaN is decimal"),
        ("date '2024-01-01' = date 'x'", "DATE 'x' is date: \"x\" is not a date such as"),
        ("infinity in (weight)", "IN takes a column and a list of values"),
        ("day = 'x'", "column 'day' is date: \"x\" is not a date such as"),
        ("clock = 5", "column 'clock' is time: 5 is not a time of day such as"),
        ("uid = 'x'", "column 'uid' is uuid: 'x' is not a UUID such as"),
        (
            "tid = 00000000-0000-4000-0000-000000000000",
            "column 'tid' is timeuuid: 00000000-0000-4000-0000-000000000000 is not a UUID of "
            "version 1",
        ),
        ("uid > 00000000-0000-4000-0000-000000000000", "column 'uid' is uuid, which has no order"),
        ("at = '2024-01-01T00:00:00.1239'", "'2024-01-01T00:00:00.1239' is finer than a timestamp"),
        ("at < timestamp '1969-12-31 23:59:59,9991Z'", "is finer than a timestamp, which has mill"),
        ("address < '10.0.0.1'", "column 'address' is inet, which has no order: use =, != or IN"),
        ("address = '10.0.0'", "column 'address' is inet: \"10.0.0\" is not an IPv4 or IPv6"),
        ("data = 'ff'", "column 'data' is blob: \"ff\" is not hexadecimal bytes such as 0x00ff"),
        ("data = 0xf", "column 'data' is blob: \"0xf\" is not hexadecimal"),
        ("took = 1", "column 'took' is duration: it cannot be compared, only tested with IS"),
        ("tags = 'a'", "column 'tags' is list: it cannot be compared"),
        ("home.street = 'a'", "home.street is not a column of shop.orders: only the list"),
        ("total < region", "column 'total' is bigint and column 'region' is text, which cannot"),
        ("region + 1 > 2", "column 'region' is text, not a number"),
        ("total", "column 'total' is bigint, not a condition"),
        ("total like 'a'", "column 'total' is bigint: LIKE takes text"),
        ("region like 5", "LIKE takes a column and a pattern in quotes"),
        ("total in ()", "the list after IN is empty"),
        ("total in (id)", "IN takes a column and a list of values"),
        ("(id, total) in ((1, 2))", "cannot be answered"),
        ("total in (select 1)", "subqueries cannot be answered"),
        ("exists (select 1)", "subqueries cannot be answered"),
        ("count(*) > 1", "count(*): an aggregate is only allowed in SELECT, HAVING and ORDER BY"),
        ("lower(region) = 'a'", "lower(region): the function lower() is not known here"),
        ("total = ?", "?: parameters cannot be used here, write the value"),
        ("total = 1; drop table x", "the query must be one statement, not 2"),
        ("total = 1 order by id", '"total = 1 order by id" is more than a condition'),
        ("total = 1 union select 2", "is more than a condition"),
        ("total =", 'cannot read the query: something is missing after "total ="'),
        ("total = 1 1", 'cannot read the query: "1" is not expected after "total = 1"'),
        ("(total = 1", "cannot read the query"),
        ("region = 'x", "cannot read the query: a quote or a bracket is not closed"),
        ("token(id) > 1 or total = 1", "token() can only be compared with whole numbers"),
        ("token(id) not between 1 and 5", "token() can only be compared with whole numbers"),
        ("token(id) <> 1", "token() can only be compared with whole numbers"),
        ("token(id) > 1.5", "token() is compared with a whole number"),
        ("token(total) > 1", "token() takes the partition key of shop.orders: token(id)"),
        ("writetime(id) > 1", "writetime(id): a primary key column has none"),
        ("ttl(tags) > 1", "ttl(tags): a list has one for each element"),
        ("case when open then open end", "cannot be answered"),
        ("total is 5", "IS takes NULL, NOT NULL, TRUE or FALSE"),
    ],
)
def test_invalid_conditions_are_refused(condition: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_where(condition, ORDERS)
    assert message in str(caught.value)
    assert caught.value.exit_code == EXIT_USAGE


def test_zeros_beyond_milliseconds_are_accepted() -> None:
    assert kept("at = '1970-01-01T00:00:00.0050000Z'", at=[4, 5, 6]) == [1]


def test_a_column_named_like_a_function_call_is_refused_beside_it() -> None:
    odd = table_of({"id": "int", "total": "int", "writetime(total)": "bigint"})
    with pytest.raises(
        QueryError, match="cannot be read together: the table has a column with the name"
    ):
        parse_where('writetime(total) > 5 and "writetime(total)" = 5', odd)


def test_a_condition_too_deep_is_an_error() -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        parse_where("(" * 5000 + "total = 1" + ")" * 5000, ORDERS)


def test_a_long_chain_is_not_too_deep() -> None:
    chain = " or ".join(f"total = {n}" for n in range(400))
    assert kept(chain, total=[399, 400]) == [0]


def test_an_overflow_names_the_expression() -> None:
    with pytest.raises(QueryError, match=r"total \* 2 is outside the range of a bigint"):
        kept("total * 2 > 0", total=[2**62])


def test_each_tested_column_is_listed_once() -> None:
    where = parse_where("total > 1 and total < 5 and writetime(Price) > 0", ORDERS)
    assert where.columns == ("total", "writetime(price)")
    assert [fetch.selector for fetch in where.fetches] == [
        '"total"',
        'writetime("price") AS "writetime(price)"',
    ]


FULL = (-(2**63), 2**63 - 1)


@each(
    ("condition", "bound"),
    [
        ("total = 1", None),
        ("token(id) > 5", (5, FULL[1])),
        ("token(id) >= 5 and token(id) <= 9", (4, 9)),
        ("5 < token(id) and 9 > token(id)", (5, 8)),
        ("token(id) = 5", (4, 5)),
        ("token(id) between -5 and 5", (-6, 5)),
        ("(token(id) > 1 and total = 1) and token(id) > 2", (2, FULL[1])),
        ("token(id) >= -9223372036854775808", FULL),
        ("token(id) > -9223372036854775808", FULL),
        ("token(id) > -99999999999999999999", FULL),
        ("token(id) < 99999999999999999999", FULL),
        ("token(id) <= 9223372036854775807", FULL),
        ("token(id) < 9223372036854775807", (FULL[0], FULL[1] - 1)),
    ],
)
def test_bounds_of_tokens(condition: str, bound: tuple[int, int] | None) -> None:
    where = parse_where(condition, ORDERS)
    assert where.tokens == bound
    assert not where.nothing


@pytest.mark.parametrize(
    "condition",
    [
        "token(id) > 5 and token(id) <= 5",
        "token(id) > 9223372036854775807",
        "token(id) < -9223372036854775808",
        "token(id) > 9 and token(id) < 3",
        "id in (1, 2) and id = 3",
        "id = null",
    ],
)
def test_conditions_that_no_row_meets(condition: str) -> None:
    assert parse_where(condition, ORDERS).nothing


def test_token_bounds_are_not_tested_by_row() -> None:
    assert kept("token(id) = 5 and id < 1", id=[0, 1]) == [0]
    assert parse_where("token(id) = 5", ORDERS).columns == ()


@each(
    ("condition", "keys"),
    [
        ("id = 1", [(1,)]),
        ("1 = id and total > 5", [(1,)]),
        ("id in (1, 2, 1, null)", [(1,), (2,)]),
        ("id in (1, 2, 3) and (id) in (3, 2, 9)", [(2,), (3,)]),
        ("id = 1 or id = 2", None),
        ("not id = 1", None),
        ("id not in (1, 2)", None),
        ("id > 1", None),
        ("id = total", None),
        ("id = 1 and token(id) > 5", None),
        ("total = 1", None),
    ],
)
def test_partition_keys(condition: str, keys: list[tuple[int]] | None) -> None:
    assert parse_where(condition, ORDERS).keys == keys


@each(
    ("cql_type", "literal", "value"),
    [
        ("text", "'a'", "a"),
        ("bigint", "-5", -5),
        ("varint", "99999999999999999999", 99999999999999999999),
        ("boolean", "true", True),
        ("timestamp", "'1970-01-01T00:00:01Z'", 1000),
        ("date", "'1970-01-01'", 2**31),
        ("time", "'00:00:01'", 10**9),
        ("inet", "'::0001'", "::1"),
        # spelled as by an unload; Python writes dots from 3.13 on
        ("inet", "'::FFFF:1.2.3.4'", "::ffff:102:304"),
        ("inet", "'::ffff:0.0.0.4'", "::ffff:0:4"),
        ("blob", "0x00ff", b"\x00\xff"),
        (
            "uuid",
            "123e4567-e89b-12d3-a456-426614174000",
            uuid.UUID("123e4567-e89b-12d3-a456-426614174000"),
        ),
    ],
)
def test_keys_are_bound_as_values_of_the_driver(cql_type: str, literal: str, value: object) -> None:
    table = table_of({"id": cql_type, "n": "int"}, ("id", "n"))
    assert parse_where(f"id = {literal} and n in (1, 2)", table).keys == [(value, 1), (value, 2)]
    assert parse_where(f"id = {literal}", table).keys is None


@pytest.mark.parametrize("cql_type", ["decimal", "double", "float"])
def test_equal_values_may_be_different_keys(cql_type: str) -> None:
    assert parse_where("id = 1.5", table_of({"id": cql_type})).keys is None


def test_too_many_keys_become_a_scan() -> None:
    numbers = ", ".join(str(n) for n in range(101))
    table = table_of({"id": "int", "n": "int"}, ("id", "n"))
    assert parse_where(f"id in ({numbers}) and n in ({numbers})", table).keys is None
    keys = parse_where(f"id in ({numbers}) and n = 1", table).keys
    assert keys is not None and len(keys) == 101


def test_decimals_are_bound_exactly() -> None:
    where = parse_where("price = 0.1000000000000000000000000000000000001", ORDERS)
    assert where.columns == ("price",)
    assert Decimal("0.1000000000000000000000000000000000001") != Decimal("0.1")
    assert kept("price = 0.1000000000000000000000000000000000001", price=["0.1"]) == []


@pytest.mark.parametrize(
    "condition",
    [
        "total = '{}'",
        "total = {}",
        "at = {}",
        "region = {}",
        "region like '{}!' escape '!'",
        "'{}'",
        "lower('{}') = 1",
    ],
    ids=lambda condition: condition,
)
def test_messages_show_the_start_of_a_long_value(condition: str) -> None:
    value = "7" * 300_000
    with pytest.raises(QueryError) as caught:
        parse_where(condition.format(value), ORDERS)
    assert "777..." in str(caught.value)
    assert len(str(caught.value)) < 500


def test_repeated_percent_signs_count_as_one() -> None:
    pattern = "%" * 200_000 + "b"
    assert kept(f"region like '{pattern}'", region=["ab", "ba"]) == [0]


def test_a_pattern_that_cannot_be_compiled_is_refused_before_the_job() -> None:
    with pytest.raises(QueryError, match=r"^LIKE 'a%a.*\.\.\.': the pattern is too long"):
        parse_where(f"region like '{'a%' * 100_000}'", ORDERS)
