"""The items of the SELECT for an unload's --mapping."""

import pytest

from producer.plan.selection import selected_items
from ringhaul.errors import UsageError
from ringhaul.records.mapping_text import parse_mapping
from tests.unit.query.tables import table_of

TABLE = table_of({"id": "int", "total": "bigint", "home": "frozen<place>", "now()": "text"})


@pytest.mark.parametrize(
    ("mapping", "items"),
    [
        ("id, total", ['"id"', '"total"']),
        ("key=id, w=writetime(total)", ['"id" AS "key"', 'writetime("total") AS "w"']),
        ("id, (int)42, uuid()", ['"id"', "(int)42", "uuid()"]),
        ("a.b=id, day=toDate(id)", ['"id" AS "a.b"', 'toDate(id) AS "day"']),
        ("uuid()=u, 'it''s'=t", ['uuid() AS "u"', "(text)'it''s' AS \"t\""]),
        ("street=home.street, id=id", ['home.street AS "street"', '"id"']),
        ("now(), now()=now()", ['"now()"', '"now()"']),
        ('"x"="now()", y=ks.f(id, total)', ['"now()" AS "x"', 'ks.f(id, total) AS "y"']),
    ],
)
def test_columns_and_what_the_server_computes(mapping: str, items: list[str]) -> None:
    assert selected_items(TABLE, parse_mapping(mapping, reads=True)) == items


@pytest.mark.parametrize("mapping", ["x=nothing", '"home.street"', 'x="now( )"'])
def test_a_name_is_a_column(mapping: str) -> None:
    with pytest.raises(UsageError, match="has no column"):
        selected_items(TABLE, parse_mapping(mapping, reads=True))
