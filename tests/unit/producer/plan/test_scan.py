"""The SELECT that is made from the options of a count."""

from __future__ import annotations

from typing import Any, cast

import pytest

from producer.plan import scan
from producer.plan.scan import Read, read_select, refuse_local, refuse_virtual
from producer.request.scan import Wanted, check_wanted
from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.schema import TableSchema
from ringhaul.cluster.view import ClusterView
from ringhaul.errors import UsageError
from ringhaul.query.errors import QueryError
from tests.loads import table_schema
from tests.unit.cluster.sessions import session, simple, strategy
from tests.unit.query.tables import table_of


def read(table: TableSchema, monkeypatch: pytest.MonkeyPatch, **wanted: Any) -> Read:
    monkeypatch.setattr(scan, "find_table", lambda *_, **__: table)
    monkeypatch.setattr(scan, "check_consistency", lambda *_, **__: None)
    monkeypatch.setattr(scan, "refuse_local", lambda *_: None)
    monkeypatch.setattr(scan, "refuse_virtual", lambda *_: None)
    no_cluster = cast(ClusterView, None)
    return read_select(no_cluster, Wanted(table="shop.orders", counts=True, **wanted))


@pytest.mark.parametrize(
    ("key", "heading"),
    [
        (["id"], "count"),
        (["count"], "rows"),
        (["rows", "id"], "count"),
        (["count", "rows"], "rows_2"),
        (["rows_2", "count", "rows"], "rows_3"),
    ],
)
def test_the_count_of_top_partitions_has_a_distinct_name(
    key: list[str], heading: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = dict.fromkeys([*key, "a"], "int") | ({} if "count" in key else {"count": "int"})
    found = read(table_of(columns, tuple(key)), monkeypatch, top=3)
    assert found.names == (*key, heading)
    assert found.select is not None
    assert [group.name for group in found.select.groups] == key
    assert [order.descending for order in found.select.order] == [True]
    assert found.select.order[0].scalar.type.name == "bigint", "ordered by the count, not by a key"


@pytest.mark.parametrize("end", ["", ";", " ALLOW FILTERING", " allow filtering;", " -- why"])
@pytest.mark.parametrize("wanted", [{"top": 3}, {"by": "range"}, {}])
def test_a_condition_may_end_as_in_cqlsh(
    end: str, wanted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of({"id": "int", "u": "uuid", "Case": "text", "b": "blob"})
    where = (
        "\"Case\" = 'it''s; ALLOW FILTERING' AND b != 0xcafe AND token(id) > -5 "
        "AND u = 123e4567-e89b-12d3-a456-426614174000"
    )
    found = read(table, monkeypatch, where=where + end, **wanted)
    assert found.select is not None
    assert found.select.where.tokens == (-5, 2**63 - 1)
    assert set(found.select.where.columns) == {"Case", "b", "u"}


def test_more_than_a_condition_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of({"id": "int"})
    with pytest.raises(QueryError, match="more than a condition"):
        read(table, monkeypatch, top=3, where="id = 1 GROUP BY id")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Wanted(table="orders"), "no keyspace: give --keyspace"),
        (Wanted(table="shop.orders", keyspace="ops"), "--table names keyspace shop"),
        (Wanted(table="shop.orders", where="a >"), "something is missing after"),
        (Wanted(table="shop.orders", where="a = 1 LIMIT 3"), "is more than a condition"),
        (Wanted(table="shop.orders", items=["a", "b("]), "cannot read the query"),
        (Wanted(sql="SELECT FROM WHERE"), "cannot read the query"),
        (Wanted(sql="SELECT a FROM orders"), "name the table as keyspace.table"),
        (Wanted(sql="SELECT a FROM x.y JOIN x.z ON 1 = 1"), "joins cannot be answered"),
    ],
)
def test_errors_with_any_schema_are_reported_without_one(wanted: Wanted, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_wanted(wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(table="shop.orders"),
        Wanted(table="orders", keyspace="shop", items=["nota", "ttl(b)"], where="token(x) > 5"),
        Wanted(table="shop.orders", where="a = 1", counts=True, by="host"),
        Wanted(sql="SELECT region, count(*) FROM shop.orders GROUP BY region LIMIT 3"),
    ],
)
def test_names_that_may_exist_are_checked_against_the_schema(wanted: Wanted) -> None:
    check_wanted(wanted)


def test_a_virtual_table_has_no_ranges() -> None:
    table, one = table_schema({"id": "int"}, ["id"]), session("ONE", simple("1"), "dc1")
    refuse_virtual(DriverView(one), table)
    one.cluster.metadata.keyspaces["shop"].virtual = True
    with pytest.raises(UsageError, match=r"shop\.orders is a virtual table"):
        refuse_virtual(DriverView(one), table)


@pytest.mark.parametrize("virtual", [False, True])
def test_tables_that_differ_by_node_are_not_read_from_several_nodes(virtual: bool) -> None:
    found = simple("1") if virtual else strategy("LocalStrategy")
    table = table_schema({"id": "int"}, ["id"])

    def refuse(*dcs: str) -> None:
        several = session("ONE", found, *dcs)
        several.cluster.metadata.keyspaces["shop"].virtual = virtual
        refuse_local(DriverView(several), table)

    refuse("dc1")
    with pytest.raises(UsageError, match=r"each of the 2 nodes has its own shop\.orders"):
        refuse("dc1", "dc1")
