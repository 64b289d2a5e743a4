"""A new table: its key, its statement, and how it differs from one that exists."""

from __future__ import annotations

import pytest

from ringhaul.errors import UsageError
from ringhaul.mapping.inference import Inferred
from ringhaul.mapping.new_table import (
    column_names,
    differences,
    new_table,
    parse_key,
    repeated_keys,
)
from ringhaul.plain_text import as_message
from tests.cases import each
from tests.loads import table_schema


def columns(*names: str, **types: str) -> dict[str, Inferred]:
    return {name: Inferred("text", "such as") for name in names} | {
        name: Inferred(kind, "why") for name, kind in types.items()
    }


def test_the_statement_quotes_what_is_no_plain_name() -> None:
    found = new_table(
        "shop", "orders", columns("region", "Order Id", 'a"b', "table", "2nd", id="bigint"), None
    )
    assert found.statement == (
        "CREATE TABLE shop.orders (\n"
        "    region text,\n"
        '    "Order Id" text,\n'
        '    "a""b" text,\n'
        '    "table" text,\n'
        '    "2nd" text,\n'
        "    id bigint,\n"
        "    PRIMARY KEY (id)\n"
        ");"
    )


@pytest.mark.parametrize(
    ("key", "clause", "reason"),
    [
        (None, "PRIMARY KEY (id)", "the column id; --primary-key names others"),
        ("region", "PRIMARY KEY (region)", "as --primary-key says"),
        ("region, id", "PRIMARY KEY (region, id)", "as --primary-key says"),
        ("(region,id)", "PRIMARY KEY ((region, id))", "as --primary-key says"),
        ("(region, id), at", "PRIMARY KEY ((region, id), at)", "as --primary-key says"),
    ],
)
def test_the_key_is_the_one_that_is_named(key: str | None, clause: str, reason: str) -> None:
    found = new_table("shop", "orders", columns("region", "at", "id"), key)
    assert f"    {clause}\n" in found.statement
    assert found.key_reason == reason


@pytest.mark.parametrize(
    ("names", "wanted"),
    [(("a", "ID", "id"), "id"), (("a", "Id"), "Id"), (("b", "a"), "b"), (("idx", "a"), "idx")],
)
def test_without_a_name_the_key_is_id_or_the_first_column(
    names: tuple[str, ...], wanted: str
) -> None:
    found = new_table("shop", "orders", columns(*names), None)
    assert found.schema.primary_key == (wanted,)
    assert wanted in found.key_reason


@each(
    ("key", "message"),
    [
        ("", "names no partition key"),
        (",", "names no partition key"),
        ("()", "names no partition key"),
        ("(),id", "names no partition key"),
        ("id,id", "names 'id' twice"),
        ("(id),id", "names 'id' twice"),
        ("idd", "the columns are id, at; did you mean 'id'"),
        ("((id),at)", r"give A,B or \(A,B\),C"),
        ("id),at", r"give A,B or \(A,B\),C"),
        ("(id) at", r"give A,B or \(A,B\),C"),
    ],
)
def test_an_impossible_key_is_refused(key: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_key(key, ["id", "at"])


def test_a_duration_is_no_key() -> None:
    with pytest.raises(UsageError, match="'id' is a duration"):
        new_table("shop", "orders", columns(id="duration"), None)


@pytest.mark.parametrize(("keyspace", "table"), [("shop", "a-b"), ("s.p", "t"), ("s", "t" * 49)])
def test_a_name_that_cassandra_refuses_is_refused_before(keyspace: str, table: str) -> None:
    with pytest.raises(UsageError, match="can be named"):
        new_table(keyspace, table, columns("id"), None)


def test_the_list_of_columns_says_why() -> None:
    found = new_table("shop", "orders", columns("evil\n\x1b[2J", id="bigint"), None)
    lines = as_message(found.text).splitlines()
    assert lines[0].split() == ["column", "type", "why"]
    assert lines[1].split() == [r"evil\n\x1b[2J", "text", "such", "as"]
    assert lines[2].split() == ["id", "bigint", "why"]
    assert lines[3] == " primary key (id): the column id; --primary-key names others"
    assert lines[4] == "CREATE TABLE shop.orders ("


def test_a_table_that_exists_may_differ() -> None:
    wanted = new_table("shop", "orders", columns("note", id="bigint"), None).schema
    same = table_schema({"id": "bigint", "note": "text"}, ["id"])
    assert differences(wanted, same) == []
    other = table_schema({"id": "int", "extra": "text"}, ["id"], ["extra"])
    assert differences(wanted, other) == [
        "it has no column note",
        "column id is int, not bigint",
        "it has a column extra",
        "its primary key is ((id), extra), not ((id))",
    ]


def test_rows_with_the_key_of_an_earlier_one_are_counted() -> None:
    assert repeated_keys([("a", 1), ("a", 2), ("a", 1), ("a", 1)]) == 2
    assert repeated_keys([]) == 0


def test_plain_names_are_columns_in_lower_case() -> None:
    assert column_names(["Id", "userName", "total"]) == {
        "Id": "id",
        "userName": "username",
        "total": "total",
    }
    assert column_names(["Id", "ID", "Net Price", "1st", "Größe"]) == {
        name: name for name in ("Id", "ID", "Net Price", "1st", "Größe")
    }


def test_a_key_is_named_in_any_case() -> None:
    assert parse_key("(Region),ID", ["region", "id"]) == (["region"], ["id"])
    assert parse_key("Id", ["Id", "id"]) == (["Id"], [])
