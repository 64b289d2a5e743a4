"""Requests for the keys of a look-up."""

from __future__ import annotations

import pytest

from ringhaul.errors import UsageError
from ringhaul.statements.lookup import LookupPlan
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
def test_keys_that_the_server_may_treat_as_equal_are_requested_one_by_one(
    cql_type: str, by_list: bool
) -> None:
    plan = LookupPlan.of(table_schema({"id": cql_type, "v": "decimal"}, ["id"]))
    assert plan.by_list == by_list
    assert plan.statement.endswith('WHERE "id" IN ?' if by_list else 'WHERE "id" = ?')


def test_a_name_with_capitals_is_shown_with_quotes() -> None:
    table = table_schema({"id": "text", "Total": "int"}, ["id"])
    with pytest.raises(UsageError, match=r"""no column 'total' in .*; did you mean '"Total"'?"""):
        LookupPlan.of(table, columns=["total"])
    assert LookupPlan.of(table, columns=["Total"]).columns == ("Total",)
