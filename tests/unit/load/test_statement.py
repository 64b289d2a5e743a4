"""The INSERT quotes names of the schema and binds the timestamp last."""

import pytest

from ringhaul.cluster.schema import TableSchema
from ringhaul.load.statement import insert_statement
from tests.loads import table_schema


def test_columns_are_bound_in_order_and_the_timestamp_last() -> None:
    table = table_schema({"id": "int", "Total": "text"}, ["id"])
    assert insert_statement(table, ["Total", "id"], 0) == (
        'INSERT INTO "shop"."orders" ("Total", "id") VALUES (?, ?) USING TIMESTAMP ?'
    )


def test_a_time_to_live_follows_the_timestamp() -> None:
    table = table_schema({"id": "int"}, ["id"])
    assert insert_statement(table, ["id"], 3600) == (
        'INSERT INTO "shop"."orders" ("id") VALUES (?) USING TIMESTAMP ? AND TTL 3600'
    )


@pytest.mark.parametrize("ttl_s", [0, 3600])
def test_a_time_to_live_of_each_row_is_bound_behind_the_timestamp(ttl_s: int) -> None:
    table = table_schema({"id": "int"}, ["id"])
    assert insert_statement(table, ["id"], ttl_s, ttl_bound=True) == (
        'INSERT INTO "shop"."orders" ("id") VALUES (?) USING TIMESTAMP ? AND TTL ?'
    )


def test_quotes_in_names_are_doubled() -> None:
    table = TableSchema(
        keyspace='k"s', table="select", columns=(), partition_key=(), clustering_key=()
    )
    assert insert_statement(table, ['a"); DROP TABLE x; --'], 0) == (
        'INSERT INTO "k""s"."select" ("a""); DROP TABLE x; --") VALUES (?) USING TIMESTAMP ?'
    )
