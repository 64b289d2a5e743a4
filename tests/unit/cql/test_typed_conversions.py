"""Columns of Parquet become other types exactly or as a reject, and so does the JSON of a row."""

from __future__ import annotations

import struct
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ringhaul.cql.nested import encode_column, encode_json, parse_json
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.typed import encode_typed, refusal
from ringhaul.cql.types import parse_type
from ringhaul.formats.parquet_json import record_json
from tests.cases import each

FIELDS = {"pair": (("First", "int"), ("second", "text"))}
FMT = TextFormat()
INTERVAL = struct.pack("<3I", 14, 3, 1500)

#: CQL type, Arrow values, the same values as the text of CSV cells.
SAME = [
    ("text", pa.array([7, -2**63]), ["7", str(-(2**63))]),
    ("ascii", pa.array([7], pa.uint8()), ["7"]),
    ("text", pa.array([True, False]), ["true", "false"]),
    ("text", pa.array([0.1, 1e300, float("nan"), float("-inf")]),
     ["0.1", "1e+300", "NaN", "-Infinity"]),
    ("text", pa.array([0.1], pa.float32()), ["0.1"]),
    ("text", pa.array([Decimal("12.50")]), ["12.50"]),
    ("text", pa.array([date(2024, 1, 31)]), ["2024-01-31"]),
    ("varchar", pa.array([datetime(2024, 1, 31, 10)], pa.timestamp("ms", "UTC")),
     ["2024-01-31T10:00:00.000Z"]),
    ("text", pa.array([time(10, 0, 1)], pa.time64("us")), ["10:00:01.000000"]),
    ("decimal", pa.array([0.1, 1.5, 1e22]), ["0.1", "1.5", "1e+22"]),
    ("decimal", pa.array([0.1], pa.float32()), ["0.1"]),
    ("varint", pa.array([3.0, -1e20]), ["3", "-100000000000000000000"]),
    ("varint", pa.array([Decimal("12.00")]), ["12"]),
    ("int", pa.array([Decimal("12.00"), Decimal("-3.00")]), ["12", "-3"]),
    ("double", pa.array([Decimal("0.10")]), ["0.1"]),
    ("float", pa.array([Decimal("16777217.0")]), ["16777217"]),
    ("boolean", pa.array([1, 0]), ["1", "0"]),
    ("duration", pa.array([INTERVAL], pa.binary(12)), ["14mo3d1s500ms"]),
    ("duration", pa.array([(1, -0, 7)], pa.month_day_nano_interval()), ["1mo7ns"]),
    ("frozen<pair>", pa.array([{"FIRST": 1, "Second": "x"}]), ['{"First":1,"second":"x"}']),
    ("frozen<pair>", pa.array([{"second": 5}]), ['{"second":"5"}']),
    ("map<text, int>", pa.array([{"a": 1, "b": 2}, {"a": None, "b": 3}]),
     ['{"a":1,"b":2}', '{"b":3}']),
    ("list<text>", pa.array([[1, 3]]), ['["1","3"]']),
]  # fmt: skip


@each(("cql", "array", "texts"), SAME)
def test_a_column_converts_as_its_text_in_csv(cql: str, array: pa.Array, texts: list[str]) -> None:
    kind = parse_type(cql, FIELDS)
    assert refusal(kind, array.type) is None
    wanted = encode_column(kind, pa.array(texts, pa.binary()), FMT, null_length=-1)
    assert not wanted.faults
    for slice_of in (array, pa.concat_arrays([array, array])[len(array) :]):
        found = encode_typed(kind, slice_of, FMT)
        assert not found.faults
        assert found.cells.values.to_pylist() == wanted.cells.values.to_pylist()
    # A rejected row is kept as JSON, which must load the same
    batch = pa.RecordBatch.from_arrays([array], ["c"])
    for row in range(len(array)):
        kept = parse_json(record_json(batch, row, [kind], FMT))["c"]
        again = encode_json(kind, [kept], FMT, null_length=-1)
        assert not again.faults
        assert again.cells.values[0] == wanted.cells.values[row]


#: CQL type, Arrow values of which the first is refused, and why.
REJECTED: list[tuple[str, pa.Array, str]] = [
    ("int", pa.array([Decimal("12.50")]), "is not a whole number"),
    ("tinyint", pa.array([Decimal("128.00")]), "is outside -128..127"),
    ("varint", pa.array([1.5]), "is not a whole number"),
    ("decimal", pa.array([float("nan")]), "is not a decimal number"),
    ("boolean", pa.array([2]), "is not one of the words"),
    ("duration", pa.array([(1, -1, 0)], pa.month_day_nano_interval()), "differ in sign"),
    ("duration", pa.array([struct.pack("<3I", 2**31, 0, 0)], pa.binary(12)), "outside an int"),
]


@pytest.mark.parametrize(("cql", "array", "why"), REJECTED)
def test_a_value_that_is_not_exact_costs_its_record(cql: str, array: pa.Array, why: str) -> None:
    kind = parse_type(cql, FIELDS)
    assert refusal(kind, array.type) is None
    found = encode_typed(kind, array, FMT)
    assert why in found.faults[0].words("c")
    kept = parse_json(record_json(pa.RecordBatch.from_arrays([array], ["c"]), 0, [kind], FMT))["c"]
    assert encode_json(kind, [kept], FMT, null_length=-1).faults


@pytest.mark.parametrize(
    ("cql", "arrow", "words"),
    [
        ("frozen<pair>", pa.struct({"first": pa.int32(), "x": pa.int32()}), "has no field x"),
        ("frozen<pair>", pa.struct({"first": pa.int32(), "First": pa.int32()}), "udt"),
        ("map<text, int>", pa.struct({"a": pa.int32(), "b": pa.string()}), "map"),
        ("map<int, bigint>", pa.struct({"a": pa.bool_()}), "bool does not become bigint"),
        ("int", pa.bool_(), "bool does not become int"),
    ],
)
def test_what_never_converts_is_refused_at_planning(
    cql: str, arrow: pa.DataType, words: str
) -> None:
    reason: Any = refusal(parse_type(cql, FIELDS), arrow)
    assert words in reason
