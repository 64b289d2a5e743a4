"""Values of nested types sort as a node sorts them, and sets and maps are stored in its order."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringhaul.cql.cells import Cells
from ringhaul.cql.types import CqlType, parse_type
from ringhaul.sstables.comparable import has_order, is_comparable, structure
from ringhaul.sstables.nested import comparable_values, in_stored_order, too_long
from tests.property.cql.any_values import EMPTY, cell_of, types, values
from tests.property.cql.pages import Pairs
from tests.scale import scaled

Parts = list[tuple[CqlType, bytes | None]]


def parts_of(kind: CqlType, value: bytes) -> Parts:
    """Return the parts of a value of the wire, one after the other."""
    at, found = 0, []

    def taken() -> bytes | None:
        nonlocal at
        (size,) = struct.unpack_from(">i", value, at)
        at += 4 + max(size, 0)
        return None if size < 0 else value[at - size : at]

    if kind.name == "vector":
        width = {"int": 4, "bigint": 8}[kind.of[0].name]
        return [(kind.of[0], value[n : n + width]) for n in range(0, len(value), width)]
    if kind.name in ("tuple", "udt"):
        return [(of, taken()) for of in kind.of]
    (count,) = struct.unpack_from(">i", value, 0)
    at = 4
    for _ in range(count):
        found += [(of, taken()) for of in kind.of]
    return found


def compare(kind: CqlType, left: bytes, right: bytes) -> int:
    """Compare two values part by part, as `compareCustom` of a node's types does."""
    if not left or not right:
        return (len(left) > 0) - (len(right) > 0)
    if kind.scalar:
        first, second = (keys_of(kind.name, [one])[0] for one in (left, right))
        return (first > second) - (first < second)
    mine, theirs = parts_of(kind, left), parts_of(kind, right)
    for (of, a), (_, b) in zip(mine, theirs, strict=False):
        is_null = (a is not None) - (b is not None)
        found = is_null if a is None or b is None else compare(of, a, b)
        if found:
            return found
    return (len(mine) > len(theirs)) - (len(mine) < len(theirs))


def keys_of(name: str, raw: Sequence[bytes]) -> list[bytes]:
    """Return values as bytes that compare."""
    data, offsets = comparable_values(
        name,
        np.frombuffer(b"".join(raw), np.uint8).copy(),
        np.cumsum([0, *map(len, raw)]).astype(np.int32),
    )
    return [bytes(data[a:b]) for a, b in pairwise(offsets)]


def without_wide_vectors(kind: CqlType) -> bool:
    """Whether `parts_of` can read a type."""
    if kind.name == "vector" and kind.of[0].name not in ("int", "bigint"):
        return False
    return all(map(without_wide_vectors, kind.of))


KEYABLE = types(keyable=True).filter(lambda kind: bool(kind.of)).filter(without_wide_vectors)


@st.composite
def typed(draw: st.DrawFn) -> tuple[CqlType, list[bytes]]:
    kind = draw(KEYABLE)
    found = draw(st.lists(values(kind, ("int", "uuid", "varint"), bound=True), max_size=8))
    return kind, [cell_of(kind, value) or b"" for value in [*found, EMPTY]]


@settings(max_examples=scaled(60, 5000))
@given(case=typed())
def test_bytes_of_any_nested_type_sort_like_its_values(case: tuple[CqlType, list[bytes]]) -> None:
    kind, raw = case
    assert is_comparable(kind)
    found = keys_of(structure(kind), raw)
    by_bytes = sorted(zip(found, raw, strict=True))
    by_value = sorted(raw, key=cmp_to_key(lambda a, b: compare(kind, a, b)))
    for (_, mine), theirs in zip(by_bytes, by_value, strict=True):
        assert compare(kind, mine, theirs) == 0
    for (first, one), (second, other) in pairwise(by_bytes):
        assert (first == second) == (compare(kind, one, other) == 0)
    cells = Cells.variable(pa.array(raw, pa.binary()))
    ordered = in_stored_order(structure(kind), cells)
    assert len(ordered) == len(cells)
    assert in_stored_order(structure(kind), ordered) is ordered


@pytest.mark.parametrize(
    ("text", "ascending"),
    [
        ("list<int>", [[], [-5], [-5, 1], [0], [0, -1], [1]]),
        ("list<text>", [[], [""], ["", ""], ["a"], ["a", ""], ["a\0"], ["a\0", "b"], ["ab"]]),
        (
            "tuple<int, text>",
            [(None, None), (None, ""), (None, "a"), (-1, "z"), (0, None), (0, "")],
        ),
        ("vector<int, 2>", [[-1, 5], [0, -1], [0, 0], [256, 0]]),
        ("list<tuple<text, int>>", [[], [(None, 1)], [("", 0)], [("", 0), ("", 0)], [("\0", -9)]]),
    ],
)
def test_values_sort_by_their_parts_and_then_by_their_number(
    text: str, ascending: list[Any]
) -> None:
    kind = parse_type(text)
    raw = [cell_of(kind, value) or b"" for value in ascending]
    found = keys_of(structure(kind), [b"", *raw])
    assert found == sorted(set(found))


def test_texts_of_types_can_be_read_again() -> None:
    person = CqlType("udt", (CqlType("text"), CqlType("set", (CqlType("int"),))), ("n", "t"))
    kind = CqlType(
        "list", (CqlType("map", (person, CqlType("vector", (CqlType("int"),), size=3))),)
    )
    assert structure(kind) == "list<map<tuple<text, set<int>>, vector<int, 3>>>"
    assert structure(parse_type(structure(kind))) == structure(kind)
    assert has_order(kind) and not has_order(person)
    assert not is_comparable(CqlType("list", (CqlType("duration"),)))


def stored(text: str, found: list[Any]) -> list[bytes | None]:
    """Return what is stored of values as a file has them; None is null."""
    kind = parse_type(text)
    raw = [cell_of(kind, value) for value in found]
    lengths = np.array([-1 if one is None else len(one) for one in raw], ">i4")
    cells = Cells(None, lengths, pa.array([one or b"" for one in raw], pa.binary()))
    ordered = in_stored_order(structure(kind), cells)
    return [
        None if length < 0 else value.as_py()
        for value, length in zip(ordered.values, ordered.lengths, strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "given", "wanted"),
    [
        ("set<int>", [[5, 1, 1, -7], None, [], [2]], [[-7, 1, 5], None, [], [2]]),
        ("list<set<text>>", [[["b", "a"], []], [["a"]]], [[["a", "b"], []], [["a"]]]),
        ("set<set<int>>", [[[3, 1], [2], [1, 3]]], [[[1, 3], [2]]]),
        ("set<decimal>", [["1.0", "1.00", "-2"]], [["-2", "1.0"]]),
        ("set<tuple<set<int>, int>>", [[([2, 1], 1), ([1], 1)]], [[([1], 1), ([2, 1], 1)]]),
        ("set<vector<int, 2>>", [[[1, 2], [-1, 9]]], [[[-1, 9], [1, 2]]]),
    ],
)
def test_sets_are_stored_in_the_order_of_a_node(
    text: str, given: list[Any], wanted: list[Any]
) -> None:
    kind = parse_type(text)

    def with_numbers(value: Any) -> Any:
        if "decimal" in text and value is not None:
            return [Decimal(one) for one in value]
        return value

    found = stored(text, [with_numbers(one) for one in given])
    assert found == [cell_of(kind, with_numbers(one)) for one in wanted]


def test_maps_keep_the_first_key_and_the_last_value() -> None:
    kind = parse_type("map<decimal, set<int>>")
    value = Pairs([(Decimal("2"), [9, 8]), (Decimal("1.0"), [1]), (Decimal("1.00"), [3, 2])])
    (found,) = stored("map<decimal, set<int>>", [value])
    assert found == cell_of(kind, Pairs([(Decimal("1.0"), [2, 3]), (Decimal("2"), [8, 9])]))


def test_what_is_in_order_already_is_not_copied() -> None:
    kind = parse_type("map<int, list<set<int>>>")
    raw = cell_of(kind, Pairs([(1, [[1, 2]]), (2, [])]))
    cells = Cells.variable(pa.array([raw], pa.binary()))
    assert in_stored_order(structure(kind), cells) is cells


def test_decimals_that_take_too_long_to_sort_are_found_wherever_they_are() -> None:
    kind = parse_type("list<tuple<int, decimal>>")
    long = struct.pack(">i", 0) + b"\x11" * 2000
    short = struct.pack(">i", 0) + b"\x11" * 20

    def value(*decimals: bytes) -> bytes:
        tuples = [struct.pack(">ii", 4, 1) + struct.pack(">i", len(one)) + one for one in decimals]
        parts = b"".join(struct.pack(">i", len(one)) + one for one in tuples)
        return struct.pack(">i", len(tuples)) + parts

    found = [value(short), value(*[short] * 200), value(short, long), b""]
    cells = Cells.variable(pa.array(found, pa.binary()))
    assert too_long(structure(kind), cells).tolist() == [False, False, True, False]
    assert too_long("text", cells).tolist() == [False] * 4
    alone = Cells.variable(pa.array([long, short], pa.binary()))
    assert too_long("decimal", alone).tolist() == [True, False]
