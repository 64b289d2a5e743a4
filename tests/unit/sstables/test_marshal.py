"""Types as Cassandra's classes."""

from __future__ import annotations

import pytest

from ringhaul.cql.types import parse_type
from ringhaul.sstables.marshal import class_name, fixed_width, is_multi_cell

USER_TYPES = {"Site": (("id", "int"), ("tags", "frozen<set<text>>"))}
SITE = "UserType(shop,53697465,6964:Int32Type,74616773:SetType(UTF8Type))"


@pytest.mark.parametrize(
    ("cql", "found", "width"),
    [
        ("varchar", "UTF8Type", 0),
        ("date", "SimpleDateType", 0),
        ("timeuuid", "TimeUUIDType", 16),
        (
            "frozen<map<text, frozen<list<int>>>>",
            "FrozenType(MapType(UTF8Type,ListType(Int32Type)))",
            0,
        ),
        ("tuple<int, frozen<set<int>>>", "TupleType(Int32Type,SetType(Int32Type))", 0),
        ("vector<float, 3>", "VectorType(FloatType , 3)", 12),
        ("vector<text, 3>", "VectorType(UTF8Type , 3)", 0),
        ('frozen<"Site">', f"FrozenType({SITE})", 0),
        ('frozen<list<frozen<"Site">>>', f"FrozenType(ListType({SITE}))", 0),
    ],
)
def test_names_and_widths_are_those_of_cassandra(cql: str, found: str, width: int) -> None:
    kind = parse_type(cql, USER_TYPES)

    assert class_name(kind, "shop").replace("org.apache.cassandra.db.marshal.", "") == found
    assert fixed_width(kind) == width


@pytest.mark.parametrize(
    ("cql", "many"),
    [
        ("list<int>", True),
        ('"Site"', True),
        ("frozen<list<int>>", False),
        ('frozen<"Site">', False),
        ("tuple<int>", False),
        ("text", False),
    ],
)
def test_columns_with_several_cells_are_recognised(cql: str, many: bool) -> None:
    assert is_multi_cell(cql, parse_type(cql, USER_TYPES)) is many
