"""Cells of a source compared with those of a table, and the text of differences."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from ringhaul.cql.cells import NULL_LENGTH, UNSET_LENGTH, Cells
from ringhaul.cql.types import CqlType, parse_type
from ringhaul.statements.compare import Shown, describe_difference, differing, plain, shown_cells
from tests.cases import each

TEXT, INT = CqlType("text"), CqlType("int")


def cell(*parts: bytes | None) -> bytes:
    """Values, each preceded by its length."""
    return b"".join(
        struct.pack(">i", -1 if part is None else len(part)) + (part or b"") for part in parts
    )


def collection(*parts: bytes | None, each: int = 1) -> bytes:
    return struct.pack(">i", len(parts) // each) + cell(*parts)


def differences(
    kind: CqlType, pairs: list[tuple[bytes | None, bytes | None]], *, frozen: bool = False
) -> list[bool]:
    expected = Cells.variable(pa.array([pair[0] for pair in pairs], pa.binary()))
    actual = pa.array([pair[1] for pair in pairs], pa.binary())
    found: list[bool] = differing(expected, actual, kind, frozen=frozen).tolist()
    return found


def test_bytes_are_compared_and_null_differs_from_empty() -> None:
    pairs = [(b"a", b"a"), (b"a", b"b"), (b"", b""), (None, None), (None, b""), (b"", None)]
    assert differences(TEXT, pairs) == [False, True, False, False, True, True]


def test_cells_of_one_width() -> None:
    expected = Cells.fixed(pa.array([1, 2, 3]).to_numpy().astype(">i4"))
    actual = pa.array([b"\0\0\0\1", None, b"\0\0\0\4"], pa.binary())
    assert differing(expected, actual, INT, frozen=False).tolist() == [False, True, True]


def test_an_unset_cell_equals_any_value() -> None:
    values = pa.array([None, None, b"a"], pa.binary())
    actual = pa.array([b"x", None, b"x"], pa.binary())
    unset = Cells.variable(values.drop_null()).spread(values.is_valid().to_numpy(False), -2)
    assert unset.lengths.tolist() == [UNSET_LENGTH, UNSET_LENGTH, 1]
    assert differing(unset, actual, TEXT, frozen=False).tolist() == [False, False, True]
    null = Cells.variable(values)
    assert null.lengths.tolist() == [NULL_LENGTH, NULL_LENGTH, 1]
    assert differing(null, actual, TEXT, frozen=False).tolist() == [True, False, True]


@each(
    ("cql", "left", "right", "same"),
    [
        ("set<text>", collection(b"b", b"a", b"b"), collection(b"a", b"b"), True),
        ("set<text>", collection(b"b", b"a"), collection(b"a", b"c"), False),
        ("list<text>", collection(b"b", b"a"), collection(b"a", b"b"), False),
        (
            "map<text, int>",
            collection(b"b", b"1", b"a", b"2", each=2),
            collection(b"a", b"2", b"b", b"1", each=2),
            True,
        ),
        # The later of two entries with one key is kept.
        (
            "map<text, int>",
            collection(b"a", b"1", b"a", b"2", each=2),
            collection(b"a", b"2", each=2),
            True,
        ),
        (
            "map<text, int>",
            collection(b"a", b"1", b"b", b"2", each=2),
            collection(b"a", b"2", b"b", b"1", each=2),
            False,
        ),
        # Values within other values have such a form, too.
        (
            "tuple<int, frozen<set<text>>>",
            cell(b"1", collection(b"b", b"a")),
            cell(b"1", collection(b"a", b"b")),
            True,
        ),
        (
            "list<frozen<map<text, frozen<set<text>>>>>",
            collection(collection(b"k", collection(b"b", b"a"), each=2)),
            collection(collection(b"k", collection(b"a", b"b"), each=2)),
            True,
        ),
        # Older values lack the fields that were added to a type later.
        ("tuple<int, text>", cell(b"1"), cell(b"1", None), True),
        ("tuple<int, text>", cell(b"1"), cell(b"1", b""), False),
    ],
)
def test_values_that_the_server_stores_in_a_normal_form(
    cql: str, left: bytes, right: bytes, same: bool
) -> None:
    assert differences(parse_type(cql), [(left, right), (right, left)]) == [not same] * 2


@pytest.mark.parametrize(
    ("cql", "empty"),
    [("list<int>", collection()), ("set<int>", collection()), ("map<int, int>", collection())],
)
def test_an_empty_collection_is_null_unless_it_is_frozen(cql: str, empty: bytes) -> None:
    pairs: list[tuple[bytes | None, bytes | None]] = [(empty, None), (None, empty), (empty, empty)]
    assert differences(parse_type(cql), pairs) == [False, False, False]
    assert differences(parse_type(cql), pairs, frozen=True) == [True, True, False]


def test_a_user_defined_type_of_nulls_is_null_unless_it_is_frozen() -> None:
    kind = parse_type("point", {"point": (("x", "int"), ("y", "text"))})
    pairs: list[tuple[bytes | None, bytes | None]] = [(cell(None, None), None)]
    assert differences(kind, pairs) == [False]
    assert differences(kind, pairs, frozen=True) == [True]
    assert differences(kind, [(cell(b"1", None), cell(b"1"))]) == [False]
    # A field that was added to the type later is present, with a value or null
    assert differences(kind, [(cell(b"1", b"a"), cell(b"1", b"a", None))]) == [False]
    assert differences(kind, [(cell(b"1", b"a"), cell(b"1", b"a", b"new"))]) == [True]


@pytest.mark.parametrize("broken", [b"", b"\0\0\0\1", b"\0\0\0\1\0\0\0\5ab"])
def test_an_invalid_cell_is_never_read_beyond_its_end(broken: bytes) -> None:
    with pytest.raises((struct.error, ValueError)):
        plain(parse_type("set<text>"), broken)


def test_values_are_shown_as_an_unload_writes_them() -> None:
    cells = Cells.variable(pa.array([b"\0\0\0\7", None, b""], pa.binary()))
    assert shown_cells(INT, cells) == [Shown(b"\0\0\0\7", "7"), Shown(None, None), Shown(b"", "0x")]
    kind, cell = parse_type("set<text>"), collection(b"a", b"b")
    assert shown_cells(kind, Cells.variable(pa.array([cell]))) == [Shown(cell, '["a","b"]')]


@pytest.mark.parametrize(
    ("actual", "expected", "words"),
    [
        ("7", "8", 'the table has "7", the source "8"'),
        (None, "", 'the table has no value, the source ""'),
        ("x", None, 'the table has "x", the source no value'),
        (
            "a" * 100 + "bcd",
            "a" * 100 + "x",
            f'the table has "{"a" * 20}bcd", the source "{"a" * 20}x" from character 81 on',
        ),
        ("b" * 100, "a", f'the table has "{"b" * 64}...", the source "a"'),
    ],
)
def test_the_text_of_a_difference(actual: str | None, expected: str | None, words: str) -> None:
    here, there = (Shown(text and text.encode(), text) for text in (actual, expected))
    assert describe_difference(here, there) == words


def test_different_values_with_equal_text_are_shown_as_bytes() -> None:
    assert describe_difference(Shown(b"\0\1", "1"), Shown(b"\1", "1")) == (
        'the table has "1" (bytes 0x0001), the source "1" (bytes 0x01)'
    )
    assert describe_difference(Shown(b"", None), Shown(None, None)) == (
        'the table has "" (bytes 0x), the source no value'
    )
