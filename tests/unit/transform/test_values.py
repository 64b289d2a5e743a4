"""Python values to cells: texts are read like CSV fields, others by their type."""

from __future__ import annotations

import datetime
import ipaddress
import struct
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ringhaul.cql.cells import UNSET_LENGTH
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.types import parse_type
from ringhaul.transform.values import arrow_column, encode_values
from tests.cases import each

UTC = datetime.UTC
NOON, HALF = 1_769_860_800_000, 43_200_000  # of 2026-01-31 UTC, and half a day
ID = uuid.UUID("8a6e0804-2bd0-4672-b79d-d97027f9071a")
GERMAN = TextFormat(
    decimal_sep=",", thousands_sep=".", true_words=("ja",), false_words=("nein",), blob="base64",
    timestamp_formats=("%d.%m.%Y",), timezone="Europe/Berlin", epoch_unit="s",
)  # fmt: skip


def cells(cql: str, *values: Any, fmt: TextFormat = GERMAN) -> list[bytes | int | str]:
    """Per value: the cell's bytes, its length if it is null or unset, or the error."""
    column = encode_values(parse_type(cql), list(values), fmt, null_length=UNSET_LENGTH)
    found: list[bytes | int | str] = []
    for row, length in enumerate(column.cells.lengths.tolist()):
        if row in column.faults:
            found.append(column.faults[row].words("c"))
        else:
            found.append(length if length < 0 else column.cells.values[row].as_py())
    return found


@each(
    ("cql", "value", "wire"),
    [
        ("int", "1.500", struct.pack(">i", 1500)),
        ("int", 1500, struct.pack(">i", 1500)),
        ("double", "1,5", struct.pack(">d", 1.5)),
        ("double", 1.5, struct.pack(">d", 1.5)),
        ("double", np.float64(1.5), struct.pack(">d", 1.5)),
        ("int", np.int64(7), struct.pack(">i", 7)),
        ("boolean", "ja", b"\1"),
        ("boolean", True, b"\1"),
        ("boolean", np.bool_(False), b"\0"),
        ("blob", "q80=", b"\xab\xcd"),
        ("blob", b"\xab\xcd", b"\xab\xcd"),
        ("text", b"caf\xc3\xa9", "café".encode()),
        ("text", 5, b"5"),
        ("uuid", ID, ID.bytes),
        ("uuid", ID.bytes, ID.bytes),
        ("inet", ipaddress.ip_address("10.0.0.1"), bytes([10, 0, 0, 1])),
        ("inet", bytes([10, 0, 0, 1]), bytes([10, 0, 0, 1])),
        ("decimal", Decimal("1.50"), struct.pack(">i", 2) + bytes([150 >> 8, 150])),
        ("timestamp", "31.01.2026", struct.pack(">q", 1769814000_000)),  # midnight in Berlin
        ("timestamp", datetime.datetime(2026, 1, 31, tzinfo=UTC), struct.pack(">q", NOON - HALF)),
        ("timestamp", datetime.datetime(2026, 1, 31), struct.pack(">q", 1769814000_000)),
        ("date", datetime.date(1970, 1, 2), struct.pack(">I", 2**31 + 1)),
        ("time", datetime.time(0, 0, 1), struct.pack(">q", 10**9)),
        ("duration", datetime.timedelta(microseconds=-3), b"\0\0\x97\x6f"),
        ("list<int>", (1, 2), struct.pack(">iiiii", 2, 4, 1, 4, 2)),
        ("list<blob>", [b"\1"], struct.pack(">ii", 1, 1) + b"\1"),
        ("map<text, int>", {"a": 1}, struct.pack(">ii", 1, 1) + b"a" + struct.pack(">ii", 4, 1)),
        ("map<int, int>", [(1, 2)], struct.pack(">iiiii", 1, 4, 1, 4, 2)),
        ("tuple<int, text>", (1, None), struct.pack(">iii", 4, 1, -1)),
    ],
)  # fmt: skip
def test_values_become_cells(cql: str, value: Any, wire: bytes) -> None:
    assert cells(cql, value, None) == [wire, UNSET_LENGTH]


def test_texts_and_others_may_stand_in_one_column() -> None:
    assert cells("int", "1.000", None, 1000, "x", 2**40, True) == [
        struct.pack(">i", 1000),
        UNSET_LENGTH,
        struct.pack(">i", 1000),
        'cast int: "x" is not a whole number',
        *cells("int", 2**40),
        *cells("int", True),
    ]
    assert "outside" in str(cells("int", 2**40)[0])


@pytest.mark.parametrize(
    ("cql", "value", "message"),
    [
        ("int", object(), "a object is not a value of a column"),
        ("text", b"\xff", "'utf-8' codec can't decode"),
        ("uuid", b"\1", "badly formed hexadecimal UUID string"),
        ("text", "\ud800", "half of a surrogate pair is no character"),
        ("int", {"a": 1}, "a JSON object where a int belongs"),
    ],
)
def test_an_invalid_value_is_an_error_of_its_row(cql: str, value: Any, message: str) -> None:
    (found, good) = cells(cql, value, "5" if cql != "uuid" else str(ID))
    assert isinstance(found, str)
    if cql != "uuid":
        assert message in found
    assert isinstance(good, bytes)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, None], pa.array([1, None])),
        (["a", 1, None], pa.array(["a", "1", None])),
        ([2**70], pa.array([str(2**70)])),
        ([None, None], pa.nulls(2, pa.string())),
        ([1, 2.5], pa.array(["1", "2.5"])),
        (
            [datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 5)],
            pa.array(["2024-01-02", "2024-01-02T05:00:00"]),
        ),
        ([{"x": 1}, None, {"x": 2}], pa.array([{"x": 1}, None, {"x": 2}])),
        ([{"x": 1}, {"y": 2}], pa.array(['{"x": "1"}', '{"y": "2"}'])),
        ([[1], {"a": "b"}], pa.array(['["1"]', '{"a": "b"}'])),
    ],
)
def test_arrow_columns_are_of_the_common_type_or_text(
    values: list[Any], expected: pa.Array
) -> None:
    assert arrow_column(values).equals(expected)
