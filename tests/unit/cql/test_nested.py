"""Nested values from JSON: what is refused, and with which message."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from ringhaul.cql.nested import encode_column, encode_json, loadable, parse_json
from ringhaul.cql.text import TextFormat
from ringhaul.cql.types import CqlType, parse_type
from ringhaul.formats.json_text import parse_spelt
from tests.cases import each
from tests.property.cql.columns import wire

FORMAT = TextFormat()
USER_TYPES = {"address": (("street", "text"), ("codes", "frozen<set<int>>"))}


def reason(cql: str, text: bytes, fmt: TextFormat = FORMAT) -> str | None:
    kind = parse_type(cql, USER_TYPES)
    _, bad = encode_column(kind, pa.array([text], pa.binary()), fmt, null_length=-2)
    return bad[0].words("tags") if bad else None


@each(
    ("cql", "text", "expected"),
    [
        ("list<int>", b'[1,2,3,"x"]', 'cast int: tags[3]: "x" is not a whole number'),
        (
            "list<int>",
            b"[1.5]",
            'cast int: tags[0]: "1.5" is not a whole number; --rounding half-even reads it as 2 '
            "(its fraction is lost)",
        ),
        (
            "list<int>",
            b"[true]",
            'cast int: tags[0]: "true" is not a whole number; --accept booleans reads it as 1',
        ),
        ("list<int>", b"[1,null]", "cast int: tags[1]: null is not allowed in a list"),
        ("set<int>", b"[[1]]", "cast int: tags[0]: a JSON array where a int belongs"),
        ("list<int>", b"7", 'cast list: "7" where a JSON array belongs'),
        ("list<int>", b"{}", "cast list: a JSON object where a JSON array belongs"),
        ("list<int>", b"true", "cast list: true or false where a JSON array belongs"),
        (
            "list<int>",
            b"",
            'cast list: "" is not JSON: Expecting value at character 1, and not a CQL literal: '
            "[ is expected at character 1",
        ),
        (
            "list<int>",
            b"[1",
            "cast list: \"[1\" is not JSON: Expecting ',' delimiter at character 3, and not a CQL "
            "literal: ] is expected at character 3",
        ),
        (
            "list<text>",
            b'["a',
            'cast list: "["a" is not JSON: Unterminated string starting at character 2, and not a '
            "CQL literal: ] is expected at character 2",
        ),
        ("list<text>", b'["\xff"]', 'cast list: "["\\xff"]" is invalid UTF-8 at byte 3'),
        (
            "map<text, int>",
            b'{"a":1,"b":"y"}',
            'cast int: tags["b"]: "y" is not a whole number; --accept booleans reads it as 1',
        ),
        ("map<text, int>", b'{"a":null}', 'cast int: tags["a"]: null is not allowed in a map'),
        ("map<int, int>", b'{"a":1}', 'cast int: tags key: "a" is not a whole number'),
        ("map<int, int>", b"[[1,2],[3]]", "cast map: tags[1]: not a [key, value] pair"),
        (
            "map<frozen<list<int>>, int>",
            b'[[[1],2],[[3],"z"]]',
            'cast int: tags[1][1]: "z" is not a whole number',
        ),
        ("tuple<int, text>", b"[1]", "cast tuple: 1 elements where the tuple has 2"),
        ("tuple<int, text>", b'["q","a"]', 'cast int: tags[0]: "q" is not a whole number'),
        ("vector<float, 3>", b"[1,2]", "cast vector: 2 elements where the vector has 3"),
        ("vector<float, 2>", b'[1,"w"]', 'cast float: tags[1]: "w" is not a number'),
        ("vector<text, 2>", b'["a",null]', "cast text: tags[1]: null is not allowed in a vector"),
        (
            "frozen<address>",
            b'{"street":"a","town":"b"}',
            'cast udt: no field is named "town"; its fields are street, codes',
        ),
        (
            "list<frozen<address>>",
            b'[{},{"codes":[1,"v"]}]',
            'cast int: tags[1].codes[1]: "v" is not a whole number',
        ),
    ],
)
def test_a_bad_element_is_reported_by_its_path(cql: str, text: bytes, expected: str) -> None:
    assert reason(cql, text) == expected


@pytest.mark.parametrize("parse", [parse_json, parse_spelt])
def test_a_duplicate_name_in_an_object_is_refused(parse: Callable[[bytes], Any]) -> None:
    assert parse(b'{"a": {"a": 1}, "b": null}') == {"a": {"a": "1"}, "b": None}
    for text in (b'{"id": 3, "total": 1, "id": 4}', b'[{"a": {"id": 1, "id": 1}}]'):
        with pytest.raises(ValueError, match='the name "id" occurs twice in an object'):
            parse(text)


def test_json_nested_too_deeply_is_refused_without_an_exception() -> None:
    deep = b"[" * 200_000
    assert "nesting is too deep" in str(reason("list<int>", deep))


def test_one_bad_row_leaves_the_others_unchanged() -> None:
    texts = [b"[1,2]", b'["x"]', None, b"[]", b"[3]"]
    cells, bad = encode_column(
        parse_type("list<int>"), pa.array(texts, pa.binary()), FORMAT, null_length=-2
    )
    assert list(bad) == [1]
    found = wire(cells)
    one, two, three = (number.to_bytes(4, "big") for number in (1, 2, 3))
    four = (4).to_bytes(4, "big")
    assert [found[0], *found[2:]] == [
        two + four + one + four + two, None, bytes(4), one + four + three
    ]  # fmt: skip
    assert cells.lengths[2] == -2


def test_number_and_boolean_options_of_csv_do_not_apply_to_json() -> None:
    fmt = TextFormat(decimal_sep=",", thousands_sep=".", true_words=("ja",), false_words=("nein",))
    kind = parse_type("tuple<double, boolean, boolean>")
    values = [parse_json(b'[1.5, true, "nein"]')]
    cells, faults = encode_json(kind, values, fmt, null_length=-1)
    assert faults == {}
    assert wire(cells)[0] == bytes.fromhex("00000008 3ff8000000000000 00000001 01 00000001 00")


def test_a_nested_value_in_a_string_of_json_is_read_as_a_cell_of_csv() -> None:
    kind = parse_type("list<int>")
    texts = ["[1, 2]", "[1,2]", " [ ]", "null", "7", "x", "", "\ud800", '"[1]"']
    cells, faults = encode_json(kind, texts, FORMAT, null_length=-1)
    expected, _ = encode_json(kind, [["1", "2"], ["1", "2"], [], None], FORMAT, null_length=-1)
    assert wire(cells)[:4] == wire(expected)
    assert {row: fault.words("tags") for row, fault in faults.items()} == {
        4: 'cast list: "7" where a JSON array belongs',
        5: 'cast list: "x" where a JSON array belongs',
        6: 'cast list: "" where a JSON array belongs',
        7: 'cast list: "\\ud800" where a JSON array belongs',
        8: 'cast list: "[1]" where a JSON array belongs',
    }
    _, faults = encode_json(parse_type("list<list<int>>"), [["[1]"]], FORMAT, null_length=-1)
    assert [fault.words("tags") for fault in faults.values()] == [
        'cast list: tags[0]: "[1]" where a JSON array belongs'
    ]


def test_the_digits_of_numbers_are_kept() -> None:
    cells, _ = encode_json(
        CqlType("decimal"),
        [parse_json(b"1.50"), parse_json(b"12345678901234567890.123456789012345")],
        FORMAT, null_length=-1,
    )  # fmt: skip
    exact, _ = encode_json(
        CqlType("decimal"), ["1.50", "12345678901234567890.123456789012345"], FORMAT, null_length=-1
    )
    assert wire(cells) == wire(exact)


def test_a_missing_field_of_a_user_defined_type_is_null() -> None:
    kind = parse_type("frozen<address>", USER_TYPES)
    cells, faults = encode_json(kind, [{}, {"street": "a"}], FORMAT, null_length=-1)
    assert faults == {}
    null = b"\xff" * 4
    assert wire(cells) == [null + null, b"\0\0\0\1a" + null]


@pytest.mark.parametrize("cql", ["counter", "list<counter>", "frozen<tuple<int, counter>>"])
def test_counters_are_not_loadable(cql: str) -> None:
    assert not loadable(parse_type(cql))


@pytest.mark.parametrize("cql", ["duration", "map<text, frozen<list<duration>>>", "address"])
def test_all_other_types_are_loadable(cql: str) -> None:
    assert loadable(parse_type(cql, USER_TYPES))


def test_a_list_of_nothing_but_nulls_has_one_fault_and_little_memory() -> None:
    text = b"[" + b"null," * 300_000 + b"null]"
    texts = pa.array([text, b"[1]", b"[1,null]"], pa.binary())
    tracemalloc.start()
    _, bad = encode_column(parse_type("list<int>"), texts, FORMAT, null_length=-1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert list(bad) == [0, 2]
    assert peak < 60 * len(text)
