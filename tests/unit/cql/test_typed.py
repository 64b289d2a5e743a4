"""Columns of other Arrow types than ours: which are converted, and which are refused."""

from __future__ import annotations

import io
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringhaul.cql.text import TextFormat
from ringhaul.cql.typed import encode_typed, refusal
from ringhaul.cql.types import parse_type
from tests.cases import each
from tests.property.cql.columns import encode, wire
from tests.quickest import quickest

FORMAT = TextFormat()
USER_TYPES = {"address": (("street", "text"), ("number", "int"))}


def typed(cql: str, array: pa.Array, fmt: TextFormat = FORMAT) -> list[Any]:
    """Per row its wire bytes, None for null, or the reason why it is refused."""
    kind = parse_type(cql, USER_TYPES)
    assert refusal(kind, array.type) is None
    cells, faults = encode_typed(kind, array, fmt)
    found: list[Any] = list(wire(cells))
    for row, fault in faults.items():
        found[row] = fault.words("c")
    return found


def numbers(*values: int, unit: pa.DataType) -> pa.Array:
    width = pa.int32() if unit.bit_width == 32 else pa.int64()
    return pa.array(values, width).view(unit)


def int64(value: int) -> bytes:
    return struct.pack(">q", value)


@each(
    ("cql", "array", "expected"),
    [
        ("bigint", pa.array([1, None], pa.int8()), [int64(1), None]),
        (
            "int",
            pa.array([2**31, 5], pa.int64()),
            ["cast int: 2147483648 is outside -2147483648..2147483647", b"\0\0\0\5"],
        ),
        ("tinyint", pa.array([255], pa.uint8()), ["cast tinyint: 255 is outside -128..127"]),
        (
            "bigint",
            pa.array([2**63], pa.uint64()),
            [f"cast bigint: {2**63} is outside {-(2**63)}..{2**63 - 1}"],
        ),
        (
            "int",
            pa.array([7.0, 7.5, np.nan, 3e9], pa.float64()),
            [
                b"\0\0\0\7",
                "cast int: 7.5 is not a whole number",
                "cast int: nan is outside -2147483648..2147483647",
                "cast int: 3000000000 is outside -2147483648..2147483647",
            ],
        ),
        ("bigint", pa.array([2.0**62], pa.float64()), [int64(2**62)]),
        ("bigint", pa.array([Decimal(12)], pa.decimal128(5, 0)), [int64(12)]),
        ("varint", pa.array([2**64 - 1], pa.uint64()), [b"\0" + b"\xff" * 8]),
        ("double", pa.array([1.5], pa.float32()), [struct.pack(">d", 1.5)]),
        (
            "float",
            pa.array([0.1, 1e300, np.inf]),
            [
                struct.pack(">f", 0.1),
                "cast float: 1e+300 is outside the range of a float",
                struct.pack(">f", np.inf),
            ],
        ),
        (
            "float",
            pa.array([2**24, 2**24 + 1]),
            [struct.pack(">f", 2**24), "cast float: 16777217 may not be exact as a float"],
        ),
        ("timestamp", numbers(5, unit=pa.timestamp("s")), [int64(5000)]),
        (
            "timestamp",
            numbers(5_000, 5_999, -1, -1_000, unit=pa.timestamp("us", "UTC")),
            [int64(5), int64(5), int64(-1), int64(-1)],
        ),
        ("timestamp", numbers(1_999_999, -1, unit=pa.timestamp("ns")), [int64(1), int64(-1)]),
        (
            "list<timestamp>",
            pa.ListArray.from_arrays([0, 1], numbers(1_001, unit=pa.timestamp("us"))),
            [b"\0\0\0\1\0\0\0\x08" + int64(1)],
        ),
        (
            "timestamp",
            numbers(2**60, unit=pa.timestamp("s")),
            [
                "cast timestamp: +36534630048-05-13T13:56:16 is outside the timestamps that "
                "Cassandra can hold"
            ],
        ),
        ("timestamp", numbers(1, unit=pa.date32()), [int64(86_400_000)]),
        ("timestamp", pa.array([1_717_150_000_123]), [int64(1_717_150_000_123)]),
        ("date", numbers(0, unit=pa.timestamp("ns")), [struct.pack(">I", 2**31)]),
        (
            "date",
            numbers(3_600, unit=pa.timestamp("s")),
            ["cast date: 1970-01-01T01:00:00 is not at midnight, so not a date"],
        ),
        (
            "date",
            numbers(-1, unit=pa.timestamp("ns", "UTC")),
            ["cast date: 1969-12-31T23:59:59.999999999Z is not at midnight, so not a date"],
        ),
        ("date", numbers(86_400_000, unit=pa.date64()), [struct.pack(">I", 2**31 + 1)]),
        ("date", numbers(2**31 - 1, -(2**31), unit=pa.date32()), [b"\xff" * 4, bytes(4)]),
        ("time", numbers(1, unit=pa.time32("ms")), [int64(1_000_000)]),
        ("duration", numbers(2, unit=pa.duration("ms")), [b"\0\0\xe0\x3d\x09\x00"]),
        ("uuid", pa.array([bytes(range(16))], pa.binary()), [bytes(range(16))]),
        ("uuid", pa.array([b"abc"], pa.binary()), ["cast uuid: 3 bytes where a uuid has 16"]),
        (
            "timeuuid",
            pa.array([bytes(16)], pa.binary(16)),
            ["cast timeuuid: a uuid of version 0, not 1"],
        ),
        (
            "inet",
            pa.array([b"\x7f\0\0\1", b"abc"], pa.binary()),
            [b"\x7f\0\0\1", "cast inet: 3 bytes where an address has 4 or 16"],
        ),
        ("blob", pa.array([b"abc"], pa.binary(3)), [b"abc"]),
        ("blob", pa.array(["0xcafe"]), [b"\xca\xfe"]),
        ("text", pa.array([b"abc"], pa.large_binary()), [b"abc"]),
        ("int", pa.nulls(2), [None, None]),
        ("list<int>", pa.nulls(1), [None]),
        (
            "list<int>",
            pa.array([[1, None]], pa.large_list(pa.int64())),
            ["cast int: c[1]: null is not allowed in a list"],
        ),
        (
            "vector<float, 2>",
            pa.array([[1.0, 2.0], [1.0], None], pa.list_(pa.float64())),
            [
                struct.pack(">ff", 1, 2),
                "cast vector: 1 elements where the vector has 2",
                None,
            ],
        ),
        (
            "map<text, int>",
            pa.array([[{"k": "a", "v": 2**40}]]),
            [f'cast int: c["a"]: {2**40} is outside -2147483648..2147483647'],
        ),
        (
            "frozen<address>",
            pa.array([{"number": 7}], pa.struct({"number": pa.int64()})),
            [b"\xff" * 4 + b"\0\0\0\4\0\0\0\7"],
        ),
        (
            "tuple<int, int>",
            pa.array([{"a": 1, "b": 2**31}], pa.struct({"a": pa.int64(), "b": pa.int64()})),
            ["cast int: c[1]: 2147483648 is outside -2147483648..2147483647"],
        ),
        ("list<int>", pa.array(["[1]", "[1"]), [
            b"\0\0\0\1\0\0\0\4\0\0\0\1",
            "cast list: \"[1\" is not JSON: Expecting ',' delimiter at character 3, and not a CQL "
            "literal: ] is expected at character 3",
        ]),
    ],
)  # fmt: skip
def test_values_of_other_types(cql: str, array: pa.Array, expected: list[Any]) -> None:
    assert typed(cql, array) == expected


def test_decimals_keep_their_scale() -> None:
    array = pa.array([Decimal("1.50"), Decimal("-0.0001")], pa.decimal128(10, 4))
    assert typed("decimal", array) == encode("decimal", ["1.5000", "-0.0001"])
    wide = pa.array([Decimal("9" * 60)], pa.decimal256(70, 0))
    assert typed("decimal", wide) == encode("decimal", ["9" * 60])


def test_times_outside_of_a_day_are_refused() -> None:
    array = numbers(-1, 86_400 * 10**9, unit=pa.time64("ns"))
    assert typed("time", array) == [
        "cast time: -00:00:00.000000001 is outside 00:00:00..23:59:59.999999999",
        "cast time: 24:00:00.000000000 is outside 00:00:00..23:59:59.999999999",
    ]
    whole = numbers(86_400, unit=pa.time32("s"))
    assert typed("time", whole) == ["cast time: 24:00:00 is outside 00:00:00..23:59:59.999999999"]


def test_timestamps_of_every_file_format_are_floored_like_their_text() -> None:
    moments = [datetime(2024, 5, 31, 23, 59, 59, 123_999), datetime(1901, 2, 3, 4, 5, 6, 1)]
    expected = encode("timestamp", [moment.isoformat() for moment in moments])
    table = pa.table({"at": pa.array(moments, pa.timestamp("us"))})
    for options in ({}, {"use_deprecated_int96_timestamps": True}):
        file = io.BytesIO()
        pq.write_table(table, file, **options)
        assert typed("timestamp", pq.read_table(file)["at"].combine_chunks()) == expected


@pytest.mark.parametrize(
    ("value", "zone", "message"),
    [
        (-(2**63), "Europe/Berlin", "-292275055-05-16T16:47:04.192"),
        (2**63 - 1, "America/New_York", "+292278994-08-17T07:12:55.807"),
    ],
)
def test_a_zone_can_move_a_timestamp_out_of_range(value: int, zone: str, message: str) -> None:
    array = numbers(value, 0, unit=pa.timestamp("ms"))
    found = typed("timestamp", array, TextFormat(timezone=zone))
    refused = f"cast timestamp: {message} is outside the timestamps that Cassandra can hold"
    assert found[0] == refused
    assert found[1:] == encode("timestamp", ["1970-01-01T00:00"], TextFormat(timezone=zone))
    assert typed("timestamp", array)[0] == int64(value)


def test_a_column_of_bad_values_is_refused_quickly() -> None:
    """Some 0.5 s here; a cast for each value takes 9 s."""
    array = pa.array(np.full(2**18, 2**40))
    took_s, found = quickest(lambda: typed("int", array), enough_s=5)
    assert took_s < 5
    assert set(found) == {f"cast int: {2**40} is outside -2147483648..2147483647"}


def test_a_timestamp_without_a_zone_is_in_the_zone_of_the_load() -> None:
    moment = datetime(2024, 7, 1, 12, tzinfo=UTC)
    local = pa.array([moment.replace(tzinfo=None)], pa.timestamp("us"))
    fmt = TextFormat(timezone="Europe/Paris")
    assert typed("timestamp", local, fmt) == [int64(int(moment.timestamp() * 1000) - 7_200_000)]
    fixed = pa.array([moment], pa.timestamp("us", "America/New_York"))
    assert typed("timestamp", fixed, fmt) == [int64(int(moment.timestamp() * 1000))]
    day = pa.array([date(2024, 7, 1)])
    assert typed("timestamp", day) == encode("timestamp", ["2024-07-01"])


def test_parts_of_a_duration_have_one_sign_and_their_range() -> None:
    kind = pa.struct({"months": pa.int64(), "days": pa.int32(), "nanoseconds": pa.int64()})
    rows = [
        {"months": 1, "days": -1, "nanoseconds": 0},
        {"months": 2**31, "days": 0, "nanoseconds": 0},
        {"months": None, "days": 0, "nanoseconds": 0},
        {"months": 0, "days": 0, "nanoseconds": -1},
    ]
    assert typed("duration", pa.array(rows, kind)) == [
        "cast duration: the parts 1, -1, 0 differ in sign",
        "cast duration: c.months: 2147483648 is outside an int",
        "cast duration: c.months: null; each part needs a number",
        b"\0\0\1",
    ]


@each(
    ("cql", "arrow", "words"),
    [
        ("int", pa.bool_(), "bool does not become int"),
        ("boolean", pa.float32(), "float does not become boolean"),
        ("text", pa.duration("s"), "duration[s] does not become text"),
        ("decimal", pa.bool_(), "bool does not become decimal"),
        ("bigint", pa.date32(), "date32[day] does not become bigint"),
        ("uuid", pa.int64(), "int64 does not become uuid"),
        ("time", pa.timestamp("ms"), "timestamp[ms] does not become time"),
        ("list<int>", pa.int32(), "int32 does not become list"),
        ("list<int>", pa.list_(pa.bool_()), "bool does not become int"),
        ("map<int, int>", pa.list_(pa.int32()), "list<item: int32> does not become map"),
        ("tuple<int, int>", pa.struct({"a": pa.int32()}), "struct<a: int32> does not become tuple"),
        (
            "address",
            pa.struct({"x": pa.int32()}),
            "struct<x: int32> does not become udt, which has no field x",
        ),
        ("counter", pa.int64(), "int64 does not become counter"),
    ],
)
def test_incompatible_types_are_refused(cql: str, arrow: pa.DataType, words: str) -> None:
    assert refusal(parse_type(cql, USER_TYPES), arrow) == words
