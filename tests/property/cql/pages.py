"""Result pages built from values that the driver's own serialisers wrote."""

from __future__ import annotations

import itertools
import struct
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from cassandra import cqltypes, util
from hypothesis import strategies as st

from ringhaul.cql.types import CqlType

PROTOCOL = 4
NO_METADATA = 4

# --- the driver's types


class Milliseconds(cqltypes.DateType):
    """The driver's timestamp as milliseconds: its datetime has a range and goes through a float."""

    @staticmethod
    def deserialize(data: bytes, protocol_version: int) -> int:
        return int(struct.unpack(">q", data)[0])

    @staticmethod
    def serialize(value: int, protocol_version: int) -> bytes:
        return struct.pack(">q", value)


class Sequential(cqltypes.ListType):
    """The driver's set in wire order: its own sorts, and not all values are sortable."""


class Pairs(list[tuple[Any, Any]]):
    """A map for the driver, with keys that need be neither hashable nor distinct."""

    def items(self) -> list[tuple[Any, Any]]:
        return self


SCALARS: dict[str, Any] = {
    "ascii": cqltypes.AsciiType,
    "text": cqltypes.UTF8Type,
    "varchar": cqltypes.VarcharType,
    "blob": cqltypes.BytesType,
    "tinyint": cqltypes.ByteType,
    "smallint": cqltypes.ShortType,
    "int": cqltypes.Int32Type,
    "bigint": cqltypes.LongType,
    "counter": cqltypes.CounterColumnType,
    "varint": cqltypes.IntegerType,
    "decimal": cqltypes.DecimalType,
    "float": cqltypes.FloatType,
    "double": cqltypes.DoubleType,
    "boolean": cqltypes.BooleanType,
    "timestamp": Milliseconds,
    "date": cqltypes.SimpleDateType,
    "time": cqltypes.TimeType,
    "duration": cqltypes.DurationType,
    "inet": cqltypes.InetAddressType,
    "uuid": cqltypes.UUIDType,
    "timeuuid": cqltypes.TimeUUIDType,
}

_udt_numbers = itertools.count()


def driver_type(cql_type: CqlType) -> Any:
    of = [driver_type(inner) for inner in cql_type.of]
    match cql_type.name:
        case "list":
            return cqltypes.ListType.apply_parameters(of)
        case "set":
            return Sequential.apply_parameters(of)
        case "map":
            return cqltypes.MapType.apply_parameters(of)
        case "tuple":
            return cqltypes.TupleType.apply_parameters(of)
        case "udt":
            name = f"udt{next(_udt_numbers)}"
            return cqltypes.UserType.make_udt_class("ks", name, cql_type.fields, tuple(of))
        case "vector":
            body = {"vector_size": cql_type.size, "subtype": of[0]}
            return type("vector", (cqltypes.VectorType,), body)
        case _:
            return SCALARS[cql_type.name]


# --- values, as the driver takes them


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


uuids = st.integers(0, 2**128 - 1).map(lambda value: uuid.UUID(int=value))
whole_numbers = st.one_of(integers(8), integers(64), integers(66), integers(300))
decimals = st.builds(
    lambda unscaled, scale: Decimal(
        (int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale)
    ),
    whole_numbers,
    st.one_of(st.integers(-30, 30), integers(32)),
)
addresses = st.one_of(
    st.ip_addresses().map(str),
    # Groups of zeros at all places.
    st.lists(st.sampled_from([0, 0, 0, 1, 0xFF0, 0xFFFF]), min_size=8, max_size=8).map(
        lambda groups: ":".join(f"{group:x}" for group in groups)
    ),
)
durations = st.builds(util.Duration, integers(32), integers(32), integers(64))

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "ascii": st.text(st.characters(max_codepoint=127)),
    "text": st.text(),
    "varchar": st.text(),
    "blob": st.binary(),
    "tinyint": integers(8),
    "smallint": integers(16),
    "int": integers(32),
    "bigint": integers(64),
    "counter": integers(64),
    "varint": whole_numbers,
    "decimal": decimals,
    "float": st.floats(width=32),
    "double": st.floats(),
    "boolean": st.booleans(),
    "timestamp": integers(64),
    "date": integers(32).map(util.Date),
    "time": st.integers(0, 86_400 * 10**9 - 1).map(util.Time),
    "duration": durations,
    "inet": addresses,
    "uuid": uuids,
    "timeuuid": uuids,
}

scalar_types = st.sampled_from(sorted(VALUES)).map(CqlType)
#: A counter is never inside another type.
_inner_types = st.sampled_from(sorted(VALUES.keys() - {"counter"})).map(CqlType)


def _wrapped(inner: st.SearchStrategy[CqlType]) -> st.SearchStrategy[CqlType]:
    fields = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.builds(lambda name, of: CqlType(name, (of,)), st.sampled_from(["list", "set"]), inner),
        st.builds(lambda key, value: CqlType("map", (key, value)), inner, inner),
        fields.map(lambda of: CqlType("tuple", tuple(of))),
        fields.map(lambda of: CqlType("udt", tuple(of), tuple("abc"[: len(of)]))),
        st.builds(lambda of, size: CqlType("vector", (of,), size=size), inner, st.integers(1, 3)),
    )


#: Scalar types, and nested ones of up to three levels.
types = st.one_of(
    scalar_types,
    _wrapped(_inner_types),
    _wrapped(st.one_of(_inner_types, _wrapped(_inner_types))),
    _wrapped(_wrapped(_wrapped(_inner_types))),
)


def values(cql_type: CqlType) -> st.SearchStrategy[Any]:
    """Values without nulls, except fields of tuples and user-defined types."""
    of = [values(inner) for inner in cql_type.of]
    match cql_type.name:
        case "list" | "set":
            return st.lists(of[0], max_size=3)
        case "map":
            return st.lists(st.tuples(of[0], of[1]), max_size=3).map(Pairs)
        case "tuple" | "udt":
            return st.tuples(*[st.one_of(st.none(), inner) for inner in of])
        case "vector":
            return st.lists(of[0], min_size=cql_type.size, max_size=cql_type.size)
        case _:
            return VALUES[cql_type.name]


# --- decoded values


def plain_driver(cql_type: CqlType, value: Any) -> Any:
    """A value read by the driver, in the form in which both sides are compared."""
    if value is None:
        return None
    match cql_type.name:
        case "list" | "set" | "vector":
            return [plain_driver(cql_type.of[0], item) for item in value]
        case "map":
            key_type, value_type = cql_type.of
            return [
                (plain_driver(key_type, key), plain_driver(value_type, item))
                for key, item in value._items  # items() gives equal keys the last one's value
            ]
        case "tuple" | "udt":
            pairs = zip(cql_type.of, value, strict=True)
            return [plain_driver(inner, item) for inner, item in pairs]
        case "decimal" | "varint":
            return str(value)
        case "date":
            return value.days_from_epoch
        case "time":
            return value.nanosecond_time
        case "duration":
            parts = ("months", "days", "nanoseconds")
            return {part: getattr(value, part) for part in parts}
        case "inet":
            return address_form(value)
        case "uuid" | "timeuuid":
            return value.bytes
        case "float" | "double":
            return struct.pack(">d", value)
        case "timestamp" if isinstance(value, datetime):  # whole milliseconds
            return (value - datetime(1970, 1, 1)) // timedelta(milliseconds=1)
        case _:
            return value


def address_form(text: str) -> str:
    """An address as ipaddress writes it in Python 3.11; the driver and newer Pythons mix forms."""
    head, _, tail = text.rpartition(":")
    if head and "." in tail:
        high, low = struct.unpack(">HH", bytes(map(int, tail.split("."))))
        text = f"{head}:{high:x}:{low:x}"
    return text


def plain(cql_type: CqlType, scalar: pa.Scalar) -> Any:
    """A value of one of our columns, in the same form."""
    if not scalar.is_valid:
        return None
    match cql_type.name:
        case "list" | "set" | "vector":
            return [plain(cql_type.of[0], item) for item in scalar.values]
        case "map":
            key_type, value_type = cql_type.of
            return [(plain(key_type, e[0]), plain(value_type, e[1])) for e in scalar.values]
        case "tuple" | "udt":
            return [plain(inner, scalar[i]) for i, inner in enumerate(cql_type.of)]
        case "timestamp" | "date" | "time":
            return scalar.value
        case "float" | "double":
            return struct.pack(">d", scalar.as_py())
        case _:
            return scalar.as_py()


def plain_column(cql_type: CqlType, array: pa.Array) -> list[Any]:
    return [plain(cql_type, array[i]) for i in range(len(array))]


# --- pages


def cell(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def page(
    columns: Sequence[Sequence[bytes | None]], head: bytes | None = None, rows: int | None = None
) -> bytes:
    """A Rows result with these cells; without metadata unless `head` is given."""
    if head is None:
        head = struct.pack(">iii", 2, NO_METADATA, len(columns))
    count = len(columns[0]) if rows is None else rows
    cells = [cell(value) for row in zip(*columns, strict=True) for value in row]
    return head + struct.pack(">i", count) + b"".join(cells)
