"""CQL literals in cells, as cqlsh's COPY TO of version 6.2 wrote them, and others."""

from __future__ import annotations

import pytest

from ringhaul.cql.literal import Value, parse_literal
from ringhaul.cql.types import CqlType
from tests.cases import each

TEXT, INT = CqlType("text"), CqlType("int")


def of(name: str, *kinds: CqlType, size: int = 0) -> CqlType:
    return CqlType(name, kinds, size=size)


ADDRESS = CqlType("udt", (TEXT, INT, CqlType("timestamp")), ("street", "zip", "since"))

WRITTEN_BY_COPY: list[tuple[CqlType, str, Value]] = [
    (
        of("list", TEXT),
        r"""['it''s', 'a,b', 'back\\slash', 'q"uote', 'null', ' {x}']""",
        ["it's", "a,b", r"back\\slash", 'q"uote', "null", " {x}"],
    ),
    (of("set", INT), "{-2, 1}", ["-2", "1"]),
    (
        of("map", TEXT, CqlType("timestamp")),
        "{'k: 1': '2024-01-01 12:00:00.123+0000'}",
        [["k: 1", "2024-01-01 12:00:00.123+0000"]],
    ),
    (of("map", INT, of("list", CqlType("blob"))), "{7: [0x00ff, 0x]}", [["7", ["0x00ff", "0x"]]]),
    (
        ADDRESS,
        "{street: 'a, ''b''', zip: 5, since: '2024-01-01 00:00:00.000+0000'}",
        {"street": "a, 'b'", "zip": "5", "since": "2024-01-01 00:00:00.000+0000"},
    ),
    (ADDRESS, "{street: , zip: 5, since: }", {"street": None, "zip": "5", "since": None}),
    (of("vector", CqlType("float"), size=3), "[1.5, -2, 3e+10]", ["1.5", "-2", "3e+10"]),
    (of("set", CqlType("inet")), "{'10.0.0.1', '::1'}", ["10.0.0.1", "::1"]),
    (of("list", CqlType("date")), "[2024-02-29]", ["2024-02-29"]),
    (of("list", CqlType("duration")), "[1y2mo3d]", ["1y2mo3d"]),
    (of("list", CqlType("time")), "[12:34:56.000000001]", ["12:34:56.000000001"]),
    (of("list", CqlType("double")), "[NaN, -Infinity, 1e-300]", ["NaN", "-Infinity", "1e-300"]),
    (of("list", CqlType("boolean")), "[True, False]", ["True", "False"]),
]

OTHERS: list[tuple[CqlType, str, Value]] = [
    (of("tuple", INT, TEXT), "(1, 'x')", ["1", "x"]),
    (of("tuple", INT, TEXT), "(1, null)", ["1", None]),
    (of("tuple", INT, of("list", INT)), "(1, )", ["1", None]),
    (of("set", TEXT), "{}", []),
    (of("list", of("set", INT)), " [ {1,2} , {} ] ", [["1", "2"], []]),
    (
        of("map", CqlType("time"), INT),
        "{12:34:56: 1, '01:02:03':2}",
        [["12:34:56", "1"], ["01:02:03", "2"]],
    ),
    (of("map", INT, INT), "{1:2,3 : 4}", [["1", "2"], ["3", "4"]]),
    (of("map", of("set", INT), INT), "{{1, 2}: 3}", [[["1", "2"], "3"]]),
    (CqlType("udt", (TEXT, INT), ("A b", "n")), "{\"A b\": 'x', n: 1}", {"A b": "x", "n": "1"}),
]

REFUSED = [
    (of("list", TEXT), "['a', b]", "a quote is expected at character 7"),
    (of("list", TEXT), "['a'", "] is expected at character 5"),
    (of("list", INT), "[1] 2", "nothing more is expected at character 5"),
    (of("set", INT), "[1]", "{ is expected at character 1"),
    (of("list", INT), "", "[ is expected at character 1"),
    (of("set", INT), "null", "{ is expected at character 5"),
    (of("map", INT, INT), "{1}", ": is expected at character 3"),
    (ADDRESS, "{town: 'x'}", r"a field \(street, zip, since\) is expected at character 2"),
    (
        ADDRESS,
        "{zip: 5, zip: 6}",
        "another field than 'zip', which occurs twice, is expected at character 10",
    ),
    (of("list", INT), "1, 2", r"\[ is expected at character 1"),
]


@each(("kind", "text", "value"), WRITTEN_BY_COPY + OTHERS)
def test_literals_are_parsed(kind: CqlType, text: str, value: Value) -> None:
    assert parse_literal(kind, text) == value


@each(("kind", "text", "message"), REFUSED)
def test_an_invalid_literal_is_reported_with_its_place(
    kind: CqlType, text: str, message: str
) -> None:
    with pytest.raises(ValueError, match=rf"not a CQL literal: .*{message.lstrip('[')}"):
        parse_literal(kind, text)


def test_a_literal_nested_too_deeply_is_refused() -> None:
    kind = INT
    for _ in range(5000):
        kind = of("list", kind)
    with pytest.raises(ValueError, match="nesting is too deep"):
        parse_literal(kind, "[" * 5000)
