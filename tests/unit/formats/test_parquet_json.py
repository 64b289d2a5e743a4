"""A row of Parquet as JSON: exact at the limits of every type, and read back as the same cells."""

from __future__ import annotations

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
from tests.property.cql.columns import wire
from tests.property.cql.nested_types import types, values
from tests.property.cql.test_typed import to_arrow

FORMAT = TextFormat()
MS = pa.timestamp("ms", "UTC")


def kept(cql: str, array: pa.Array) -> Any:
    batch = pa.record_batch({"c": array})
    return json.loads(record_json(batch, 0, [parse_type(cql)])).get("c")


def numbers(value: int, unit: pa.DataType) -> pa.Array:
    return pa.array([value], pa.int32() if unit.bit_width == 32 else pa.int64()).view(unit)


@pytest.mark.parametrize(
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
        ("text", pa.array([b"a\xff"]), "a\\xff"),
        ("duration", numbers(-5, pa.duration("us")), "-5us"),
        ("uuid", pa.array([b"abc"]), "0x616263"),
        ("inet", pa.array([b"\x7f\0\0\1"]), "127.0.0.1"),
        ("int", pa.nulls(1), None),
    ],
)  # fmt: skip
def test_values(cql: str, array: pa.Array, expected: Any) -> None:
    assert kept(cql, array) == expected


@given(st.data())
def test_what_is_kept_of_a_row_loads_as_the_row(data: st.DataObject) -> None:
    kind: CqlType = data.draw(types)
    value = data.draw(st.none() | values(kind))
    array = pa.array([to_arrow(kind, value)], kind.arrow())
    batch = pa.record_batch({"c": array})

    row = parse_json(record_json(batch, 0, [kind]))

    cells, faults = encode_json(kind, [row.get("c")], FORMAT, null_length=-1)
    assert faults == {}
    assert wire(cells) == wire(encode_typed(kind, array, FORMAT).cells)
