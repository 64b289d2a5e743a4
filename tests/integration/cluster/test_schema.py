"""A table's schema in a job, read from a real cluster."""

from __future__ import annotations

import json

import pytest
from cassandra.cluster import Session

from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.schema import TableSchema, quote_identifier
from ringhaul.cluster.tables import find_keyspace, find_table, keyspace_statement
from ringhaul.errors import EXIT_FATAL, ClusterError


def test_columns_keys_and_types_in_their_order(cassandra_session: Session, keyspace: str) -> None:
    # Given a table with two key columns of each kind, a static one and a name that needs quotes
    cassandra_session.execute(
        f"""CREATE TABLE {keyspace}."OrderLines" (
            shop text, "Day" date, line int, part timeuuid, note text static, amount decimal,
            tags frozen<list<text>>, PRIMARY KEY ((shop, "Day"), line, part))"""
    )
    # When
    table = find_table(DriverView(cassandra_session), keyspace, "OrderLines")
    # Then
    assert table.name == f"{keyspace}.OrderLines"
    assert table.partition_key == ("shop", "Day")
    assert table.clustering_key == ("line", "part")
    assert table.primary_key == ("shop", "Day", "line", "part")
    types = {name: table.type_of(name) for name in table.column_names}
    assert types == {
        "shop": "text",
        "Day": "date",
        "line": "int",
        "part": "timeuuid",
        "note": "text",
        "amount": "decimal",
        "tags": "frozen<list<text>>",
    }
    assert [column.name for column in table.columns if column.static] == ["note"]
    # and it survives the ledger's serialization
    assert TableSchema.from_json(json.loads(json.dumps(table.to_json()))) == table


def test_identifiers_with_any_character(cassandra_session: Session, keyspace: str) -> None:
    name = 'a "b" Ç;--'
    column = quote_identifier(name)
    cassandra_session.execute(f"CREATE TABLE {keyspace}.odd ({column} int PRIMARY KEY)")
    table = find_table(DriverView(cassandra_session), keyspace, "odd")
    assert table.column_names == (name,)
    cassandra_session.execute(f"INSERT INTO {keyspace}.odd ({column}) VALUES (7)")
    assert cassandra_session.execute(f"SELECT {column} FROM {keyspace}.odd").one()[0] == 7


def test_unknown_names(cassandra_session: Session, keyspace: str) -> None:
    cluster = DriverView(cassandra_session)
    cassandra_session.execute(f"CREATE TABLE {keyspace}.orders (id int PRIMARY KEY)")
    cases = [
        (
            (keyspace[:-1], "orders"),
            f"no keyspace {keyspace[:-1]!r} in this cluster; did you mean {keyspace!r}?",
        ),
        (
            ("zzz", "orders"),
            "no keyspace 'zzz' in this cluster; this makes it (cqlsh, or `ringhaul local cql` for "
            "the local stack): CREATE KEYSPACE zzz WITH replication = {'class': "
            "'NetworkTopologyStrategy', 'datacenter1': 1};",
        ),
        (
            (keyspace, "order"),
            f"no table 'order' in keyspace {keyspace!r}; did you mean 'orders'?",
        ),
        (
            (keyspace, "Orders"),
            f"no table 'Orders' in keyspace {keyspace!r}; did you mean 'orders'?",
        ),
        ((keyspace, "zzz"), f"no table 'zzz' in keyspace {keyspace!r}"),
    ]
    for (space, table), message in cases:
        with pytest.raises(ClusterError) as raised:
            find_table(cluster, space, table)
        assert str(raised.value) == message
        assert raised.value.exit_code == EXIT_FATAL


def test_a_keyspace_without_tables(cassandra_session: Session, keyspace: str) -> None:
    with pytest.raises(ClusterError) as raised:
        find_table(DriverView(cassandra_session), keyspace, "orders")
    assert str(raised.value) == f"no table 'orders' in keyspace {keyspace!r}; it has no table"


def test_the_suggested_keyspace_can_be_created(cassandra_session: Session) -> None:
    cluster = DriverView(cassandra_session)
    cassandra_session.execute(keyspace_statement(cluster, "Suggested"))
    try:
        assert find_keyspace(cluster, "Suggested").name == "Suggested"
        known = cassandra_session.cluster.metadata.keyspaces["Suggested"]
        assert known.replication_strategy.export_for_schema() == (
            "{'class': 'NetworkTopologyStrategy', 'datacenter1': '1'}"
        )
    finally:
        cassandra_session.execute('DROP KEYSPACE "Suggested"')
