"""Rows of Parquet as JSON: exact at the limits of every type, and read back as the same cells."""

from __future__ import annotations

import decimal
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.cql.nested import encode_json, parse_json
from ringhaul.cql.text import TextFormat
from ringhaul.cql.typed import encode_typed
from ringhaul.cql.types import CqlType, parse_type
from ringhaul.formats.parquet_json import record_json
from tests.cases import each
from tests.property.cql.columns import wire
from tests.property.cql.nested_types import types, values
from tests.property.cql.test_typed import to_arrow, to_text

FORMAT = TextFormat()
MS = pa.timestamp("ms", "UTC")


def kept(cql: str, array: pa.Array) -> Any:
    batch = pa.record_batch({"c": array})
    return json.loads(record_json(batch, 0, [parse_type(cql)], TextFormat())).get("c")


def numbers(value: int, unit: pa.DataType) -> pa.Array:
    return pa.array([value], pa.int32() if unit.bit_width == 32 else pa.int64()).view(unit)


@each(
    ("cql", "array", "expected"),
    [
        ("timestamp", numbers(2**63 - 1, MS), "+292278994-08-17T07:12:55.807Z"),
        ("timestamp", numbers(-(2**63), MS), "-292275055-05-16T16:47:04.192Z"),
        ("timestamp", numbers(-1, pa.timestamp("us")), "1969-12-31T23:59:59.999999"),
        ("date", numbers(-(2**31), pa.date32()), "-5877641-06-23"),
        ("date", numbers(2**31 - 1, pa.date32()), "+5881580-07-11"),
        ("date", numbers(-719_162, pa.date32()), "0001-01-01"),
        ("date", numbers(-719_528, pa.date32()), "0000-01-01"),
        ("time", numbers(86_400 * 10**9 - 1, pa.time64("ns")), "23:59:59.999999999"),
        ("double", pa.array([float("nan")]), "nan"),
        ("double", pa.array([-float("inf")]), "-inf"),
        ("text", pa.array(["a"]).dictionary_encode(), "a"),
        ("blob", pa.array([b"\xca\xfe"], pa.large_binary()), "0xcafe"),
        ("text", pa.array([b"a\xff"]), ["a\\xff"]),
        ("duration", numbers(-5, pa.duration("us")), "-5us"),
        ("uuid", pa.array([b"abc"]), "0x616263"),
        ("inet", pa.array([b"\x7f\0\0\1"]), "127.0.0.1"),
        ("int", pa.nulls(1), None),
        ("date", numbers(86_400, pa.timestamp("s")), "1970-01-02"),
        ("date", numbers(-86_400 * 10**9, pa.timestamp("ns", "UTC")), "1969-12-31"),
        ("date", numbers(0, pa.date64()), "1970-01-01"),
        ("date", numbers(1, pa.timestamp("us")), "1970-01-01T00:00:00.000001"),
        ("list<date>", pa.ListArray.from_arrays([0, 1], numbers(0, pa.date64())), ["1970-01-01"]),
        ("timestamp", numbers(0, pa.date64()), "1970-01-01T00:00:00.000"),
        ("time", numbers(86_400, pa.time32("s")), "24:00:00"),
        ("int", pa.array([5.0]), 5),
        ("bigint", pa.array([-1e17]), -(10**17)),
        ("int", pa.array([1e300]), int(1e300)),
        ("int", pa.array([5.5]), 5.5),
        ("int", pa.array([float("inf")]), "inf"),
        ("list<int>", pa.array(["[1, 2]"]), [1, 2]),
        ("list<decimal>", pa.array(["[1.50, 1e5, -0, 1.5]"]), ["1.50", "1e5", "-0", 1.5]),
        ("list<varint>", pa.array([f"[{10**30}]"]), [str(10**30)]),
        ("list<double>", pa.array(["[NaN]"]), ["NaN"]),
        ("map<text, int>", pa.array(["{'a': 1}"]).dictionary_encode(), [["a", "1"]]),
        ("list<int>", pa.array(["[1"]), "[1"),
        ("list<text>", pa.array([["[1]"]]), ["[1]"]),
        ("list<frozen<list<int>>>", pa.array([["[1]"]], pa.list_(pa.large_string())), [[1]]),
        (
            "map<uuid, date>",
            pa.array(
                [[{"k": b"a" * 16, "v": 0}]],
                pa.list_(pa.struct({"k": pa.binary(16), "v": pa.date32()})),
            ),
            [["61616161-6161-6161-6161-616161616161", "1970-01-01"]],
        ),
    ],
)  # fmt: skip
def test_values(cql: str, array: pa.Array, expected: Any) -> None:
    found = kept(cql, array)
    assert (found, type(found)) == (expected, type(expected))  # 5 and 5.0 are equal


@each(
    ("cql", "array"),
    [
        ("date", numbers(86_400, pa.timestamp("s"))),
        ("date", numbers(-86_400 * 10**6, pa.timestamp("us", "Europe/Paris"))),
        ("date", numbers(-86_400_000, pa.date64())),
        ("map<date, date>", pa.array(
            [[(0, 86_400_000)]], pa.map_(pa.int64(), pa.int64())
        ).cast(pa.map_(pa.timestamp("ms"), pa.date64()))),
        ("timestamp", numbers(-1, pa.timestamp("ns"))),
        ("timestamp", numbers(1_717_150_000_123_456, pa.timestamp("us", "UTC"))),
        ("int", pa.array([-5.0], pa.float32())),
        ("bigint", pa.array([1e17])),
        ("list<bigint>", pa.array([[1e17, 2.0**62]])),
        ("tuple<int, text>", pa.array(['[1, "a"]'])),
        ("list<decimal>", pa.array(["[1.50, 1e5, -0.0]"])),
        ("set<text>", pa.array(["{'a', 'b'}"])),
        ("map<text, list<int>>", pa.array([[("a", "[1]")]], pa.map_(pa.string(), pa.string()))),
    ],
)  # fmt: skip
def test_json_of_other_types_loads_as_the_same_cells(cql: str, array: pa.Array) -> None:
    assert_loads_alike(parse_type(cql), array)


@given(st.data())
def test_json_of_a_row_loads_as_the_row(data: st.DataObject) -> None:
    kind: CqlType = data.draw(types)
    value = data.draw(st.none() | values(kind))
    assert_loads_alike(kind, pa.array([to_arrow(kind, value)], kind.arrow()))


@given(st.data())
def test_json_of_values_in_text_loads_as_the_same_cells(data: st.DataObject) -> None:
    kind: CqlType = data.draw(types)
    assert_loads_alike(kind, pa.array([to_text(kind, data.draw(values(kind)))], pa.string()))


def assert_loads_alike(kind: CqlType, array: pa.Array, fmt: TextFormat = FORMAT) -> None:
    """The JSON that is kept of a row gives the same cells as the row itself."""
    row = parse_json(record_json(pa.record_batch({"c": array}), 0, [kind], fmt))

    cells, faults = encode_json(kind, [row.get("c")], fmt, null_length=-1)
    assert faults == {}
    assert wire(cells) == wire(encode_typed(kind, array, fmt).cells)


GERMAN = TextFormat(decimal_sep=",", thousands_sep=".")


@each(
    ("cql", "array", "expected"),
    [
        ("decimal", pa.array(["-1.234,50"]), "-1234.50"),
        ("decimal", pa.array(["12,50"]).dictionary_encode(), "12.50"),
        ("bigint", pa.array([" 1.500 "], pa.large_string()), "1500"),
        ("double", pa.array(["1,5e3"], pa.string_view()), "1.5e3"),
        ("double", pa.array(["NaN"]), "NaN"),
        # Misspelt values are refused again, whether JSON can hold them or not
        ("decimal", pa.array(["1,2,3"]), "1,2,3"),
        ("decimal", pa.array(["12.50"]), ["12.50"]),
        ("int", pa.array(["1.5"]), "1.5"),
        ("int", pa.array(["x"]), "x"),
        ("list<decimal>", pa.array([["1.000,5", "1.5"]]), ["1000.5", ["1.5"]]),
        ("map<int, double>", pa.array([[("1.000", 0.5)]], pa.map_("string", "double")),
         [["1000", 0.5]]),
        # Texts of other types, JSON within a text, and typed numbers stay unchanged
        ("text", pa.array(["12,50"]), "12,50"),
        ("list<double>", pa.array(["[1.500]"]), ["1.500"]),
        ("decimal", pa.array([decimal.Decimal("1.500")]), "1.500"),
    ],
)  # fmt: skip
def test_numbers_with_separators_are_read_back_as_the_same_cells(
    cql: str, array: pa.Array, expected: Any
) -> None:
    kind = parse_type(cql)
    record = record_json(pa.record_batch({"c": array}), 0, [kind], GERMAN)
    assert json.loads(record)["c"] == expected
    again = encode_json(kind, [parse_json(record)["c"]], GERMAN, null_length=-1)
    before = encode_typed(kind, array, GERMAN)
    assert bool(again.faults) == bool(before.faults)
    if not before.faults:
        assert wire(again.cells) == wire(before.cells)


BASE64 = TextFormat(blob="base64")
COMPACT = TextFormat(timestamp_formats=("%Y%m%d%H%M%S", "%Y%m%d"), epoch_unit="ms")
ONE_BLOB = pa.map_(pa.string(), pa.list_(pa.binary()))


@pytest.mark.parametrize(
    ("cql", "array", "expected"),
    [
        ("blob", pa.array([b"\xff"]), "/w=="),
        ("blob", pa.array([b"\xff\xee"], pa.binary(2)), "/+4="),
        ("blob", pa.array(["/w=="]), "/w=="),
        ("map<text, frozen<list<blob>>>", pa.array([[("k", [b"\xff", b""])]], ONE_BLOB),
         [["k", ["/w==", ""]]]),
        ("tuple<blob>", pa.array([{"0": b"\xff"}], pa.struct({"0": pa.binary()})), ["/w=="]),
    ],
)  # fmt: skip
def test_blobs_are_spelled_as_their_load_reads_them(
    cql: str, array: pa.Array, expected: Any
) -> None:
    """0xff is valid base64, too, and would be another blob."""
    assert_loads_alike(parse_type(cql), array, BASE64)
    record = record_json(pa.record_batch({"c": array}), 0, [parse_type(cql)], BASE64)
    assert json.loads(record)["c"] == expected


@pytest.mark.parametrize("number", [20260131120000, 0, -1])
def test_milliseconds_are_not_read_by_a_timestamp_pattern(number: int) -> None:
    assert_loads_alike(parse_type("timestamp"), pa.array([number]), COMPACT)


def no_utf8(raw: bytes, arrow: pa.DataType) -> pa.Array:
    """A text column with invalid UTF-8, as careless writers produce."""
    _, offsets, data = pa.array([raw], pa.binary()).buffers()
    text = pa.StringArray.from_buffers(1, offsets, data)
    return text if arrow == pa.string() else text.dictionary_encode()


@each(
    ("cql", "array", "expected"),
    [
        ("text", pa.array([b"caf\xe9"]), ["caf\\xe9"]),
        ("varchar", no_utf8(b"caf\xe9", pa.string()), ["caf\\xe9"]),
        ("text", no_utf8(b"caf\xe9", pa.dictionary(pa.int32(), pa.string())), ["caf\\xe9"]),
        ("list<text>", no_utf8(b"['\xe9']", pa.string()), {"": "['\\xe9']"}),
        ("map<text, text>", no_utf8(b"{'\xe9': ''}", pa.string()), ["{'\\xe9': ''}"]),
        ("set<text>", pa.array([[b"a", b"\xff"]]), ["a", ["\\xff"]]),
        ("ascii", pa.array(["caf\xe9".encode()]), "caf\xe9"),
        ("double", pa.array([2**53 + 1]), [2**53 + 1]),
        ("float", pa.array([-(2**24) - 1]), [-(2**24) - 1]),
        ("double", pa.array([2**64 - 1], pa.uint64()), [2**64 - 1]),
        ("list<double>", pa.array([[1, 2**53 + 1]]), [1, [2**53 + 1]]),
        ("float", pa.array([1e300]), 1e300),
        ("duration", pa.array([{"months": 1, "days": -2, "nanoseconds": 3}]), ["1mo-2d3ns"]),
        ("duration", pa.array([{"months": 1, "days": None, "nanoseconds": 3}],
         pa.struct({part: pa.int64() for part in ("months", "days", "nanoseconds")})), ["1mo3ns"]),
        ("duration", numbers(2**62, pa.duration("s")), f"{2**62}s"),
        ("timeuuid", pa.array([b"a" * 16]), "61616161-6161-6161-6161-616161616161"),
        ("inet", pa.array([b"abc"]), "0x616263"),
        ("time", numbers(86_400, pa.time32("s")), "24:00:00"),
    ],
)  # fmt: skip
def test_a_refused_value_is_refused_again(cql: str, array: pa.Array, expected: Any) -> None:
    """A reject that is loaded again unchanged must not be accepted."""
    kind, fmt = parse_type(cql), TextFormat(epoch_unit="ms")
    record = parse_json(record_json(pa.record_batch({"c": array}), 0, [kind], fmt))["c"]
    assert encode_typed(kind, array, fmt).faults.keys() == {0}
    assert encode_json(kind, [record], fmt, null_length=-1).faults.keys() == {0}
    assert kept(cql, array) == expected


def test_a_number_that_is_not_a_timestamp_is_refused_again() -> None:
    """Only the pattern makes it a date, and the pattern is for text."""
    kind, date = parse_type("timestamp"), pa.array([20260131])
    fmt = TextFormat(timestamp_formats=("%Y%m%d",))
    assert encode_typed(kind, date, fmt).faults
    assert json.loads(record_json(pa.record_batch({"c": date}), 0, [kind], fmt)) == {
        "c": [20260131]
    }
