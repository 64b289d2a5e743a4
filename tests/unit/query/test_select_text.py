"""The text of a SELECT, split into what sqlglot reads and what only Cassandra understands."""

import time

import pytest

from ringhaul.query.select_text import ListItem, split_items, split_select
from tests.cases import each


def items(listed: str) -> list[tuple[str, str | None, bool]]:
    found = split_select(f"SELECT {listed} FROM shop.orders").items
    return [(item.cql, item.alias, item.for_server) for item in found]


@each(
    "item",
    [
        *("toJson(a)", "CAST(a AS text)", "m['k']", "m['a'..'b']", "s[1..3]", "l[0]"),
        *("(int)42", "(text)'it''s, from'", "$$a, from$$", "42", "'x'", "true", "null", "now()"),
        *("a + 1", "a % 2", "-1", "ks.f(a, b)", '"Ks"."F"(a)', "writetime(m['k'])", "ttl(a.b)"),
        *("(a, b)", "[a, b]", "{'x': a}", "(map<text, int>){'x': 1}", "a.b.c.d", "f(max)"),
        *("ks.count(a)", "'sum(a)'", "0xcafe", "123e4567-e89b-12d3-a456-426614174000"),
    ],
)
def test_expressions_of_cql_are_for_the_server(item: str) -> None:
    assert items(f'id, {item}, {item} AS "X"') == [
        ("id", None, False),
        (item, None, True),
        (item, "X", True),
    ]


@each(
    "item",
    [
        *("id", '"Id"', "o.id", "shop.orders.id", "*", "o.*", "(id)", "id x", '"A b" "c"'),
        *("writetime(id)", "TTL( id )", "token(a, b)", "(select 1)", "row_number() over ()"),
        "case when a then 1 end",
    ],
)
def test_other_items_are_for_sqlglot(item: str) -> None:
    text = f"SELECT {item} FROM shop.orders"
    split = split_select(text)
    assert (split.sql, [found.for_server for found in split.items]) == (text, [False])


@each(
    "text",
    [
        *(
            "",
            "SELECT",
            "SELECT 1",
            "DELETE FROM t",
            "SELECT a; SELECT b FROM t",
            "SELECT , FROM t",
        ),
        *(
            "SELECT now(), count(*) FROM t",
            "SELECT max(m['k']) FROM t",
            "SELECT DISTINCT f(a) FROM t",
        ),
        *("SELECT f(a) FROM t GROUP BY a", 'SELECT "sum"(a) FROM t', "SELECT system.avg(a) FROM t"),
        *("SELECT toJson(max(a)) FROM t", "SELECT (a FROM t", "SELECT stdev(a) FROM t"),
    ],
)
def test_what_selects_no_rows_stays_as_it_is(text: str) -> None:
    assert split_select(text) == (text, (), None)


def test_stand_ins_take_the_place_of_expressions() -> None:
    split = split_select("select now() -- a, from\n, cql0, f(a) AS \"x\" from t where a = 'f(a)'")
    assert split.sql == 'select "cql_0", cql0, "cql_2" from t where a = \'f(a)\''
    assert split.items[0] == ListItem("now()", None, True, ())
    assert split.items[2] == ListItem("f(a)", "x", True, ())


@pytest.mark.parametrize("name", ["json", "json, a", "json AS j", "json.a", "json[1]"])
def test_a_column_may_be_called_json(name: str) -> None:
    assert split_select(f"SELECT {name} FROM t").items[0].cql.startswith("json")


@pytest.mark.parametrize(
    ("tail", "left", "number"),
    [
        ("PER PARTITION LIMIT 3", "", "3"),
        ("where a = 'per partition limit 2' per  partition/**/LIMIT 17 limit 5;", None, "17"),
        ("limit 5", "limit 5", None),
        ("per partition limit", "", ""),
    ],
)
def test_the_limit_of_partitions_is_taken_out(
    tail: str, left: str | None, number: str | None
) -> None:
    split = split_select(f"SELECT a FROM t {tail}")
    assert split.per_partition == number
    if left is None:
        left = "where a = 'per partition limit 2'  limit 5;"
    assert split.sql == f"SELECT a FROM t {left}"


@pytest.mark.parametrize("piece", ["(", "'", '"', "$$", "/*", "a,", "as ", "per partition ", "--"])
def test_a_long_text_takes_linear_time(piece: str) -> None:
    began = time.process_time()
    split_select(f"SELECT {piece * 10_000}")
    split_select(f"SELECT a FROM t {piece * 10_000}")
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('id, "a,b"', ["id", '"a,b"']),
        ("f(a,b) AS c,(text)'x,y',, m['k,']", ["f(a,b) AS c", "(text)'x,y'", "m['k,']"]),
        (" , ", []),
    ],
)
def test_a_list_is_split_at_its_own_commas(text: str, found: list[str]) -> None:
    assert split_items(text) == found
