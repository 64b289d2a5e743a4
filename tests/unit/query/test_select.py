from collections.abc import Sequence
from typing import Any

import pytest

from ringhaul.cluster.schema import TableSchema
from ringhaul.cql.computed_items import Computed
from ringhaul.cql.types import CqlType
from ringhaul.query.errors import QueryError
from ringhaul.query.select import Select, has_limit, parse_select, selects_rows
from ringhaul.scan.sizing import FIRST_ROWS
from ringhaul.scan.statement import first_page_rows, scan_statement
from tests.cases import each
from tests.unit.query.tables import ORDERS, batch_of, table_of


def tables(keyspace: str, table: str) -> TableSchema:
    assert (keyspace, table) == ("shop", "orders")
    return ORDERS


def read(sql: str) -> Select:
    return parse_select(sql, tables)


def test_plain_rows() -> None:
    select = read("SELECT Region AS r, total, writetime(total), ttl(price) AS t FROM shop.orders")
    assert not select.is_aggregate
    assert select.names == ("r", "total", "writetime(total)", "t")
    assert [t.name for t in select.types] == ["text", "bigint", "bigint", "int"]
    assert select.columns == ("region", "total", "writetime(total)", "ttl(price)")
    assert [fetch.selector for fetch in select.fetches] == [
        '"region"',
        '"total"',
        'writetime("total") AS "writetime(total)"',
        'ttl("price") AS "ttl(price)"',
    ]


def test_all_columns_in_the_order_of_the_schema() -> None:
    select = read("select * from shop.orders where total > 1")
    assert select.names == ORDERS.column_names
    assert select.columns == ORDERS.column_names


def test_project_filters_and_names() -> None:
    select = read('select "Case" as c, tags from shop.orders where total > 1')
    assert select.columns == ("Case", "tags", "total")
    batch = batch_of(ORDERS, Case=["a", "b"], tags=[["x"], None], total=[1, 2])
    assert select.project(batch).to_pylist() == [{"c": "b", "tags": None}]


def test_tokens_keys_and_a_limit() -> None:
    select = read("select token(id) from shop.orders where id in (1, 2) limit 5")
    assert select.columns == ("token(id)", "id")
    assert select.where.keys == [(1,), (2,)]
    assert select.limit == 5
    assert read("select id from shop.orders where token(id) > 5").where.tokens == (5, 2**63 - 1)


def test_the_keyspace_may_be_given_separately() -> None:
    assert parse_select("select id from Orders", tables, "shop").table is ORDERS
    assert parse_select("select o.id from shop.orders as o", tables).names == ("id",)


def test_only_columns_of_the_aggregates_are_read() -> None:
    assert read("select count(*) from shop.orders").columns == ()
    select = read(
        "select region, sum(total * small) s from shop.orders where open group by 1 order by s"
    )
    assert select.is_aggregate
    assert select.columns == ("region", "total", "small", "open")


def test_names_and_types_of_aggregates() -> None:
    select = read(
        "select region, COUNT(*), sum(total), sum(price), sum(ratio), avg(total), avg(price), "
        "max(at), count(distinct uid), approx_distinct(uid), quantile(total, 0.99), "
        "median(total) as m, sum(total) / count(*) from shop.orders group by region"
    )
    assert dict(zip(select.names, (t.name for t in select.types), strict=True)) == {
        "region": "text",
        "count(*)": "bigint",
        "sum(total)": "varint",
        "sum(price)": "decimal",
        "sum(ratio)": "double",
        "avg(total)": "double",
        "avg(price)": "decimal",
        "max(at)": "timestamp",
        "count(distinct uid)": "bigint",
        "approx_distinct(uid)": "bigint",
        "quantile(total, 0.99)": "double",
        "m": "double",
        "sum(total) / count(*)": "double",
    }


def test_a_group_named_like_an_aggregate() -> None:
    odd = table_of({"id": "int", "count(*)": "int"})
    with pytest.raises(
        QueryError, match=r'count\(\*\) cannot be combined with the column "count\(\*\)"'
    ):
        parse_select('select count(*) as n from shop.orders group by "count(*)"', lambda *_: odd)


def described(table: TableSchema, items: Sequence[str]) -> list[Computed]:
    """Describe each item as a text that the server names after it."""
    assert table is ORDERS
    return [Computed(item, f"system.{item.lower()}", CqlType("text")) for item in items]


def test_the_server_computes_what_only_it_understands() -> None:
    select = parse_select(
        'SELECT id, toJson(Tags) AS j, home.street, tags[1] AS "T", toJson(Tags), /* , */ '
        "(text)'a, b' FROM shop.orders",
        tables,
        describe=described,
    )
    assert not select.is_aggregate
    assert select.names == (
        *("id", "j", "system.home.street", "T", "system.tojson(tags)"),
        "system.(text)'a, b'",
    )
    assert [one.cql for one in select.computed] == [
        *("toJson(Tags)", "home.street", "tags[1]", "(text)'a, b'"),
    ]
    assert [fetch.selector for fetch in select.fetches] == [
        '"id"',
        'toJson(Tags) AS "toJson(Tags)"',
        'home.street AS "home.street"',
        'tags[1] AS "tags[1]"',
        "(text)'a, b' AS \"(text)'a, b'\"",
    ]


def test_items_of_the_server_do_not_reach_conditions_and_limits() -> None:
    select = parse_select(
        "select now(), * from shop.orders o where o.id in (1, 2) per partition limit 3 limit 9;",
        tables,
        describe=described,
    )
    assert select.names == ("system.now()", *ORDERS.column_names)
    assert (select.where.keys, select.per_partition, select.limit) == ([(1,), (2,)], 3, 9)


def test_times_of_elements_are_for_the_server() -> None:
    select = parse_select(
        "SELECT writetime(tags), TTL(tags) AS rest, writetime(total) FROM shop.orders",
        tables,
        describe=described,
    )
    assert [one.cql for one in select.computed] == ["writetime(tags)", "TTL(tags)"]
    assert select.names == ("system.writetime(tags)", "rest", "writetime(total)")
    with pytest.raises(QueryError, match="no column 'nope'"):
        parse_select("SELECT writetime(nope) FROM shop.orders", tables, describe=described)


@pytest.mark.parametrize("tail", ["", " where id > 5", " where token(id) > 5 and id in (1, 6)"])
def test_whole_partitions_may_be_limited_by_the_server(tail: str) -> None:
    assert read(f"select at from shop.orders{tail} per partition limit 2").per_partition == 2


@pytest.mark.parametrize(
    ("sql", "ends", "first"),
    [
        ("select id from shop.orders", "<= ?", FIRST_ROWS),
        ("select id from shop.orders limit 5", "<= ?", 5),
        ("select id from shop.orders limit 1000000", "<= ?", FIRST_ROWS),
        ("select id from shop.orders where token(id) > 5 limit 5", "<= ?", 5),
        ("select id from shop.orders where total > 5 limit 5", "<= ?", FIRST_ROWS),
        (
            "select id from shop.orders per partition limit 2 limit 5",
            "<= ? PER PARTITION LIMIT 2",
            5,
        ),
    ],
)
def test_the_server_limits_partitions_and_pages(sql: str, ends: str, first: int) -> None:
    """A LIMIT is not the server's: it ignores the state of pages that are as long."""
    select = read(sql)
    assert scan_statement(select).endswith(f'AND token("id") {ends}')
    assert first_page_rows(select, select.limit) == first


@each(
    ("sql", "message"),
    [
        ("", "the query is empty"),
        ("select id from orders", "name the table as keyspace.table"),
        ("select 1", "the query has no FROM"),
        ("delete from shop.orders", "only SELECT can be answered"),
        ("select a.id from shop.orders a join shop.orders b on a.id = b.id", "joins cannot be"),
        ("select id from shop.orders, shop.orders", "joins cannot be answered"),
        ("select id from (select id from shop.orders)", "subqueries cannot be answered"),
        ("select (select 1) from shop.orders", "subqueries cannot be answered"),
        ("select id from shop.orders union select id from shop.orders", "UNION cannot be"),
        ("with x as (select 1) select id from x", "WITH cannot be answered"),
        ("select sum(total) over () from shop.orders", "window functions (OVER) cannot be"),
        ("select row_number() over (order by id) from shop.orders", "window functions (OVER)"),
        ("select id from shop.orders qualify id > 1", "QUALIFY cannot be answered"),
        ("select id from shop.orders limit 5 offset 3", "OFFSET cannot be answered"),
        ("select id from shop.orders limit x", "LIMIT takes a whole number"),
        (
            "select id from shop.orders limit 10 percent",
            "LIMIT with PERCENT or WITH TIES cannot be",
        ),
        (
            "select id from shop.orders limit 10 with ties",
            "LIMIT with PERCENT or WITH TIES cannot be",
        ),
        ("select id from shop.orders limit 1 by id", "LIMIT BY cannot be answered"),
        ("select count(*) from shop.orders order by 1 with fill", "WITH FILL cannot be answered"),
        ("select id from shop.orders order by id", "ORDER BY is only for aggregates"),
        ("select id from shop.orders having id > 1", "HAVING is only for aggregates"),
        ("select idd from shop.orders", "no column 'idd' in table shop.orders; did you mean 'id'"),
        ("select id, id from shop.orders", "two columns of the result are called 'id'"),
        ("select region.x from shop.orders", "region.x is not a column of shop.orders: only the"),
        ("select a.b.c.d from shop.orders", "a.b.c.d: only rows can have what the server"),
        ("select json id from shop.orders", "SELECT JSON: leave JSON out; --format jsonl"),
        ("select json * from shop.orders", "SELECT JSON: leave JSON out; --format jsonl"),
        ("select case when open then 1 end from shop.orders", "cannot be answered"),
        ("select count(*), writetime(tags) from shop.orders", "a list has one for each element"),
        ("select writetime(tags) from shop.orders", "writetime(tags): only rows can have what the"),
        ("select sum(home.number) from shop.orders", "only the list of a SELECT of rows"),
        ("select id from shop.orders per partition limit 0", "a whole number from 1 to 2,147,483"),
        ("select id from shop.orders per partition limit", "PER PARTITION LIMIT : it takes a"),
        ("select id from shop.orders per partition limit x", "PER PARTITION LIMIT x: it takes"),
        ("select id from shop.orders per partition limit 2147483648", "a whole number from 1"),
        (
            "select id from shop.orders where total > 5 per partition limit 2",
            "PER PARTITION LIMIT 2 with a condition on column 'total': the nodes limit",
        ),
        (
            "select id from shop.orders where at > '2024-01-01' per partition limit 2",
            "PER PARTITION LIMIT 2 with a condition on column 'at'",
        ),
        ("select count(*) from shop.orders per partition limit 2", "is for rows, not for aggreg"),
        ("select * except (id) from shop.orders", "cannot be answered"),
        ("select writetime(id) from shop.orders", "a primary key column has none"),
        ("select writetime(id, total) from shop.orders", "writetime() takes one column"),
        ("select region, count(*) from shop.orders", "'region' must be in GROUP BY or inside"),
        ("select *, count(*) from shop.orders", "must be in GROUP BY or inside an aggregate"),
        ("select count(*) from shop.orders group by tags", "'tags' is list: it cannot be grouped"),
        ("select count(*) from shop.orders group by took", "'took' is duration: it cannot be"),
        ("select count(*) from shop.orders group by total + 1", "only columns can be grouped by"),
        ("select count(*) from shop.orders group by 1", "an aggregate cannot be grouped by"),
        ("select count(*) from shop.orders group by 2", "GROUP BY 2: the result has 1 columns"),
        ("select count(*) from shop.orders group by rollup(region)", "ROLLUP"),
        ("select count(*) from shop.orders order by 2", "ORDER BY 2: the result has 1 columns"),
        ("select sum(region) from shop.orders", "column 'region' is text, not a number"),
        ("select avg(at) from shop.orders", "column 'at' is timestamp, not a number"),
        ("select sum(tags) from shop.orders", "column 'tags' is list, not a number"),
        ("select min(tags) from shop.orders", "is list: only count() can be computed of it"),
        ("select count(distinct took) from shop.orders", "only count() can be computed of it"),
        ("select max(uid) from shop.orders", "column 'uid' is uuid, which has no order"),
        ("select min(total, id) from shop.orders", "min() takes one column"),
        (
            "select approx_distinct(id, 0.001) from shop.orders",
            "approx_distinct(id, 0.001): approx",
        ),
        ("select sum(distinct total) from shop.orders", "DISTINCT is only for count() of one"),
        ("select count(distinct id, total) from shop.orders", "DISTINCT is only for count()"),
        ("select sum(sum(total)) from shop.orders", "an aggregate is only allowed in SELECT"),
        ("select sum(1) from shop.orders", "sum() takes a column, not a value"),
        ("select quantile(total, 2) from shop.orders", "a number from 0 to 1"),
        ("select quantile(total, id) from shop.orders", "a number from 0 to 1"),
        ("select count(*) filter (where open) from shop.orders", "cannot be answered"),
        ("select count(*) from shop.orders where count(*) > 1", "an aggregate is only allowed in"),
        ("select count(*) from shop.orders having total > 1", "'total' must be in GROUP BY"),
        ("select count(*) from shop.orders having max(region) > 5", "5 is not text"),
        ("select distinct on (id) id from shop.orders", "DISTINCT ON cannot be answered"),
        ("select distinct count(*) from shop.orders", "SELECT DISTINCT cannot be answered"),
        ("select id from shop.orders; select id from shop.orders", "one statement, not 2"),
        ("select id frm shop.orders", "cannot read the query"),
        ("select id from shop.orders for update", "FOR UPDATE cannot be answered"),
        ("select id from shop.orders tablesample (5)", "TABLESAMPLE cannot be answered"),
    ],
)
def test_unsupported_queries_are_refused(sql: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        read(sql)
    assert message in str(caught.value)


@each(
    ("sql", "rows", "limit"),
    [
        ("SELECT * FROM shop.orders LIMIT 5", True, True),
        ("SELECT id, writetime(total) FROM shop.orders", True, False),
        ("SELECT region FROM shop.orders WHERE count = 1 LIMIT 0", True, True),
        ("SELECT count(*) FROM shop.orders LIMIT 5", False, True),
        ("SELECT m['from'], [1, max], ks.count(id) FROM shop.orders LIMIT 5", True, True),
        ("SELECT l[0..1], system.max(id) FROM shop.orders", False, False),
        ("SELECT sum(total) + 1 AS n FROM shop.orders", False, False),
        ("SELECT DISTINCT region FROM shop.orders LIMIT 5", False, True),
        ("SELECT region FROM shop.orders GROUP BY region", False, False),
        ("DELETE FROM shop.orders", False, False),
    ],
)
def test_rows_are_distinguished_from_aggregates(sql: str, rows: bool, limit: bool) -> None:
    assert (selects_rows(sql), has_limit(sql)) == (rows, limit)


def test_a_missing_table_is_an_error_of_the_caller() -> None:
    with pytest.raises(KeyError):
        parse_select("select id from shop.nothing", lambda k, t: dict[str, Any]()[t])
