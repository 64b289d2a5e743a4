"""The items of the SELECT for an unload's --mapping."""

import pytest

from producer.plan.selection import selected_items
from ringhaul.errors import UsageError
from ringhaul.mapping.language import parse_mapping
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


@pytest.mark.parametrize(
    ("mapping", "items"),
    [
        ("1=total,0=id", ['"id" AS "0"', '"total" AS "1"']),
        # The order of columns, times and what the server computes
        ("0=id,1=writetime(total),2=total", ['"id"', 'writetime("total")', '"total"']),
        ("2=total,writetime(total)=0,1=id", ['writetime("total")', '"id"', '"total"']),
        ("2=home.street,'x'=0,uuid()=1", ["(text)'x'", "uuid()", "home.street"]),
        ("01=id,00=total", ['"total"', '"id"']),
        # Fields without a position take the places that are left
        ("*=-home,0=total", ['"total"', '"id"', '"now()"']),
        ("2=id,a=total,b=home", ['"total"', '"home"', '"id"']),
        ("1=id,0=total,writetime(*)", ['"total"', '"id"', 'writetime("total")']),
        # A name in quotes is no position
        ('"1"=id,"0"=total', ['"id"', '"total"']),
    ],
)
def test_without_a_header_a_number_is_a_position(mapping: str, items: list[str]) -> None:
    found = selected_items(TABLE, parse_mapping(mapping, reads=True), named=False)
    assert [item.partition(" AS ")[0] for item in found] == [
        item.partition(" AS ")[0] for item in items
    ]
    # With names they say which value is which, and the order is that of the entries
    named = selected_items(TABLE, parse_mapping(mapping, reads=True))
    assert sorted(named) == sorted(found)


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ("1=id", "each record has 1: give what position 0 holds"),
        (
            "0=id,2=total",
            "position of a field, from 0, and each record has 2: give what position 1",
        ),
        ("*=-home,4=id", "each record has 3: give what position 0 holds"),
        ("0=id,0=total", "gives position 0 to two fields"),
        ("0=id,00=total", "gives position 0 to two fields"),
    ],
)
def test_positions_that_no_record_can_have(mapping: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        selected_items(TABLE, parse_mapping(mapping, reads=True), named=False)


def test_a_field_that_names_folders_has_no_position() -> None:
    mapping = parse_mapping("0=total,1=id,2=home", reads=True)
    with pytest.raises(UsageError, match="each record has 2: give what position 0 holds"):
        selected_items(TABLE, mapping, named=False, folders=["0"])
    assert selected_items(TABLE, mapping, named=False, folders=["2"]) == [
        '"total" AS "0"',
        '"id" AS "1"',
        '"home" AS "2"',
    ]


@pytest.mark.parametrize(
    ("mapping", "items"),
    [
        # A time that the mapping names is written once, and the other one by its own name
        (
            "id=id,total=total,w=writetime(total),writetime(*),ttl(*)",
            ['"id"', '"total"', 'ttl("total")', 'writetime("total") AS "w"'],
        ),
        (
            "id=id,total=total,writetime(total)=w,t=ttl(total),writetime(*),ttl(*)",
            ['"id"', '"total"', 'writetime("total") AS "w"', 'ttl("total") AS "t"'],
        ),
        (
            "*=*,w=writetime(total),writetime(*)",
            ['"id"', '"total"', '"home"', 'writetime("home")', '"now()"', 'writetime("now()")',
             'writetime("total") AS "w"'],
        ),
    ],
)  # fmt: skip
def test_times_that_the_mapping_names(mapping: str, items: list[str]) -> None:
    assert selected_items(TABLE, parse_mapping(mapping, reads=True)) == items
