"""How the keys of a look-up are asked for."""

from __future__ import annotations

import pytest

from ringhaul.read.lookup import LookupPlan
from tests.loads import table_schema


@pytest.mark.parametrize(
    ("cql_type", "by_list"),
    [
        ("text", True),
        ("double", True),
        ("frozen<map<text, frozen<list<int>>>>", True),
        ("decimal", False),
        ("varint", False),
        ("frozen<map<text, frozen<list<varint>>>>", False),
        ("frozen<tuple<int, decimal>>", False),
    ],
)
def test_keys_that_may_be_equal_to_the_server_are_asked_for_one_by_one(
    cql_type: str, by_list: bool
) -> None:
    plan = LookupPlan.of(table_schema({"id": cql_type, "v": "decimal"}, ["id"]))
    assert plan.by_list == by_list
    assert plan.statement.endswith('WHERE "id" IN ?' if by_list else 'WHERE "id" = ?')
