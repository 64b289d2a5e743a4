"""Answers to conditional statements: applied or not, and the current row if not."""

from __future__ import annotations

import struct

import pytest

from ringhaul.cql.frames import FrameError
from ringhaul.statements.conditions import (
    CURRENT_CHARACTERS_MAX,
    REPORTED_TOGETHER,
    Unmet,
    applied_row,
    not_applied,
)
from tests import protocol
from tests.cases import each

BOOLEAN, INT, TEXT = b"\0\4", b"\0\x09", b"\0\x0d"
TABLE = protocol.string("ks") + protocol.string("t")
#: Columns of answers: their types on the wire, a value, and its text.
CURRENT: dict[str, tuple[bytes, bytes | None, str]] = {
    "int": (INT, b"\0\0\0\7", "7"),
    "text": (TEXT, "é\n".encode(), '"é\\n"'),
    "null": (TEXT, None, "null"),
    "uuid": (b"\0\x0c", bytes(16), '"00000000-0000-0000-0000-000000000000"'),
    "set": (b"\0\x22" + INT, struct.pack(">iii", 1, 4, 5), "[5]"),
    "map": (
        b"\0\x21" + TEXT + INT,
        struct.pack(">ii", 1, 1) + b"a" + struct.pack(">ii", 4, 5),
        '{"a":5}',
    ),
    "tuple": (b"\0\x31\0\1" + INT, struct.pack(">ii", 4, 5), "[5]"),
    "user type": (
        b"\0\x30" + TABLE + b"\0\1" + protocol.string("f") + INT,
        struct.pack(">ii", 4, 5),
        '{"f":5}',
    ),
    "duration": (
        b"\0\0" + protocol.string("org.apache.cassandra.db.marshal.DurationType"),
        b"\2\4\6",
        '"1mo2d3ns"',
    ),
    "custom": (b"\0\0" + protocol.string("org.acme.Type"), b"\1\2", '"0x0102"'),
    "unknown": (b"\0\x77", b"\1", '"0x01"'),
}


def answer(columns: dict[str, bytes], *rows: tuple[bytes | None, ...]) -> bytes:
    """The body of a RESULT; the first column is `[applied]`."""
    specs = {"[applied]": BOOLEAN} | columns
    body = struct.pack(">iii", 2, 1, len(specs)) + TABLE
    body += b"".join(protocol.string(name) + kind for name, kind in specs.items())
    cells = b"".join(protocol.long_bytes(cell) for row in rows for cell in row)
    return body + struct.pack(">i", len(rows)) + cells


def test_applied_is_read_after_the_metadata() -> None:
    spec = protocol.string("[applied]") + b"\0\4"
    table = protocol.string("ks") + protocol.string("t")
    udt = b"\0\x30" + protocol.string("ks") + protocol.string("u") + b"\0\1"
    udt += protocol.string("f") + b"\0\x21\0\x09\0\x22\0\x0d"
    for applied in (b"\0", b"\1"):
        cell = protocol.long_bytes(applied)
        plain = struct.pack(">iii", 2, 1, 1) + table + spec + struct.pack(">i", 1) + cell
        assert applied_row(plain) == cell
        wide = struct.pack(">iii", 2, 0, 2) + table + spec + table + protocol.string("u") + udt
        wide += struct.pack(">i", 1) + cell + protocol.long_bytes(None)
        assert applied_row(wide) == cell
        for cut in range(len(plain) - 1):
            with pytest.raises(FrameError):
                applied_row(plain[:cut])


@each("kind", CURRENT)
def test_the_current_values_are_shown_as_json(kind: str) -> None:
    spec, value, text = CURRENT[kind]
    body = answer({"k": INT, "v": spec}, (b"\0", b"\0\0\0\3", value))
    assert not_applied([body]) == [f'not applied: the row is {{"k":3,"v":{text}}}']


def test_a_missing_row_is_reported() -> None:
    assert not_applied([answer({}, (b"\0",))]) == ["not applied: there is no such row"]


def test_a_batch_shows_the_rows_of_all_its_conditions() -> None:
    body = answer({"k": INT}, (b"\0", b"\0\0\0\1"), (b"\0", b"\0\0\0\2"))
    assert not_applied([body]) == ['not applied: the rows are {"k":1}, {"k":2}']


def test_long_current_values_are_shortened() -> None:
    (message,) = not_applied([answer({"v": TEXT}, (b"\0", b"x" * 10_000))])
    assert message.endswith("xxx...")
    assert len(message) < CURRENT_CHARACTERS_MAX + 40


def test_malformed_values_do_not_fail_the_row() -> None:
    body = answer({"v": INT}, (b"\0", b"\1"))
    assert not_applied([body]) == ["not applied: the current values cannot be read"]


def test_answers_are_reported_in_groups_each_for_its_row() -> None:
    # Given answers with and without a row, some with two rows, more than one group holds
    messages: dict[int, str] = {}
    unmet = Unmet(messages.__setitem__)
    absent, row = "not applied: there is no such row", "not applied: the row is"
    expected = {}
    for number in range(REPORTED_TOGETHER + 10):
        cells = (b"\0", struct.pack(">i", number))
        if number % 3 == 0:
            unmet.keep(number, answer({}, (b"\0",)))
            expected[number] = absent
        elif number % 3 == 1:
            unmet.keep(number, answer({"k": INT}, cells))
            expected[number] = f'{row} {{"k":{number}}}'
        else:
            unmet.keep(number, answer({"k": INT}, cells, cells))
            expected[number] = f'not applied: the rows are {{"k":{number}}}, {{"k":{number}}}'
    assert len(messages) == REPORTED_TOGETHER
    # When the rest is reported
    unmet.report()
    unmet.report()
    assert messages == expected
