"""Columns of every type in their Arrow forms, for hypothesis."""

import json
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from ringhaul.cql.types import CqlType


def whole(bits: int) -> st.SearchStrategy[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return st.one_of(st.integers(low, high), st.integers(-99, 99), st.sampled_from([low, high]))


def _millis() -> st.SearchStrategy[int]:
    day = 86_400_000
    edges = [-719_528 * day, 2_932_897 * day, 0, 951_782_400_000, 951_868_800_000]
    near = st.sampled_from(edges).flatmap(lambda edge: st.integers(edge - 1500, edge + 1500))
    return st.one_of(whole(64), st.integers(-(10**13), 10**13), near)


def _days() -> st.SearchStrategy[int]:
    edges = [-719_528, 2_932_897, -(2**31) + 3, 2**31 - 4, 0, 11_016]
    near = st.sampled_from(edges).flatmap(lambda edge: st.integers(edge - 3, edge + 3))
    return st.one_of(whole(32), st.integers(-800_000, 800_000), near)


def _reals(width: int) -> st.SearchStrategy[float]:
    return st.one_of(
        st.floats(width=width, allow_nan=False),
        st.integers(-(10**6), 10**6).map(lambda cents: _as_width(cents / 100, width)),
        st.sampled_from([-0.0, 0.0, float("inf"), float("-inf"), float("nan")]),
    )


def _as_width(value: float, width: int) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0]) if width == 32 else value


@st.composite
def _durations(draw: st.DrawFn) -> dict[str, int]:
    sign = draw(st.sampled_from([1, -1]))
    months, days = (draw(st.integers(0, 2**31 - 1) | st.integers(0, 30)) for _ in range(2))
    nanoseconds = draw(st.integers(0, 2**63 - 1) | st.integers(0, 9).map(lambda n: n * 1_000_000))
    return {"months": sign * months, "days": sign * days, "nanoseconds": sign * nanoseconds}


#: Characters that are special in CSV and JSON.
TORTURE = st.text(
    st.sampled_from(list(",;\"'\\\t\r\n\0 \ufeff\x1f\x7f|:{}[]NUL01.eé\u2028\U0001f600")),
    max_size=6,
)
TEXTS = st.one_of(st.text(max_size=12), TORTURE, st.sampled_from(["", "NULL", "\\N", "null", " "]))
UUIDS = st.uuids().map(lambda value: value.bytes)

SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "ascii": st.text(st.characters(max_codepoint=127), max_size=8),
    "text": TEXTS,
    "varchar": TEXTS,
    "inet": st.ip_addresses().map(str),
    "decimal": st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    "varint": st.integers(-(10**30), 10**30).map(str),
    "tinyint": whole(8),
    "smallint": whole(16),
    "int": whole(32),
    "bigint": whole(64),
    "float": _reals(32),
    "double": _reals(64),
    "boolean": st.booleans(),
    "timestamp": _millis(),
    "date": _days(),
    "time": st.integers(0, 86_400 * 10**9 - 1),
    "duration": _durations(),
    "uuid": UUIDS,
    "timeuuid": UUIDS.map(lambda value: value[:6] + bytes([value[6] & 0x0F | 0x10]) + value[7:]),
    "blob": st.binary(max_size=8),
}
#: Arrow builds these from numbers only through an array of the number type.
_STORED = {"timestamp": pa.int64(), "date": pa.int32(), "time": pa.int64()}
#: Key types of maps, without frozen user types; floats without NaN.
_KEYS = ("text", "int", "bigint", "boolean", "timestamp", "uuid", "blob", "inet", "double")


def values_of(cql_type: CqlType) -> st.SearchStrategy[Any]:
    """Values for `column`, none of them null at the top level."""
    inner = [st.none() | values_of(of) for of in cql_type.of]
    match cql_type.name:
        case "list" | "set":
            return st.lists(inner[0], max_size=3)
        case "vector":
            return st.lists(
                values_of(cql_type.of[0]), min_size=cql_type.size, max_size=cql_type.size
            )
        case "map":
            return st.lists(st.tuples(values_of(cql_type.of[0]), inner[1]), max_size=3)
        case "tuple":
            return st.tuples(*inner).map(lambda v: {str(i): item for i, item in enumerate(v)})
        case "udt":
            return st.tuples(*inner).map(lambda v: dict(zip(cql_type.fields, v, strict=True)))
        case name:
            return SCALARS[name]


def types(depth: int = 2) -> st.SearchStrategy[CqlType]:
    """Any type, nested at most `depth` deep."""
    scalars = st.sampled_from(sorted(SCALARS)).map(CqlType)
    if not depth:
        return scalars
    of = types(depth - 1)
    keys = st.sampled_from(_KEYS).map(CqlType) | st.just(CqlType("list", (CqlType("int"),)))
    names = st.lists(TEXTS.filter(bool), min_size=1, max_size=3, unique=True)
    return st.one_of(
        scalars,
        st.builds(lambda name, t: CqlType(name, (t,)), st.sampled_from(["list", "set"]), of),
        st.builds(lambda k, v: CqlType("map", (k, v)), keys, of),
        st.lists(of, min_size=1, max_size=3).map(lambda ts: CqlType("tuple", tuple(ts))),
        names.flatmap(
            lambda ns: st.tuples(*[of] * len(ns)).map(lambda ts: CqlType("udt", ts, tuple(ns)))
        ),
        st.builds(lambda t, n: CqlType("vector", (t,), size=n), of, st.integers(1, 3)),
    )


def column(cql_type: CqlType, values: Sequence[Any]) -> pa.Array:
    """The Arrow form of values; None is null."""
    return _built(cql_type, values)


def _built(cql_type: CqlType, values: Sequence[Any]) -> pa.Array:
    arrow = cql_type.arrow()
    match cql_type.name:
        case "list" | "set":
            offsets, flat = _flattened(values)
            items = _built(cql_type.of[0], flat)
            built = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, type=arrow)
        case "vector":
            flat = [
                item for v in values for item in (v if v is not None else [None] * cql_type.size)
            ]
            items = _built(cql_type.of[0], flat)
            mask = pa.array([v is None for v in values], pa.bool_())
            return pa.FixedSizeListArray.from_arrays(items, type=arrow, mask=mask)
        case "map":
            offsets, flat = _flattened(values)
            keys = _built(cql_type.of[0], [key for key, _ in flat])
            items = _built(cql_type.of[1], [item for _, item in flat])
            built = pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items, type=arrow)
        case "tuple" | "udt":
            fields = list(arrow)
            children = [
                _built(of, [None if v is None else v[field.name] for v in values])
                for field, of in zip(fields, cql_type.of, strict=True)
            ]
            mask = pa.array([v is None for v in values], pa.bool_())
            return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
        case name if name in _STORED:
            return pa.array(values, _STORED[name]).cast(arrow)
        case _:
            return pa.array(values, arrow)
    assert built.type == arrow
    return built


def _flattened(values: Sequence[Any]) -> tuple[list[int | None], list[Any]]:
    """Offsets in Arrow's form (null where the list is null), and the items of all lists."""
    offsets: list[int | None] = []
    flat: list[Any] = []
    for value in values:
        offsets.append(None if value is None else len(flat))
        flat += value or []
    return [*offsets, len(flat)], flat


def plain(cql_type: CqlType, value: Any, text: Callable[[CqlType, Any], str]) -> Any:
    """The expected result of `json.loads` for a value; `text` spells a scalar."""
    if value is None:
        return None
    match cql_type.name:
        case "list" | "set" | "vector":
            return [plain(cql_type.of[0], item, text) for item in value]
        case "tuple" | "udt":
            names = list(value)
            parts = [
                plain(of, value[name], text) for of, name in zip(cql_type.of, names, strict=True)
            ]
            return parts if cql_type.name == "tuple" else dict(zip(names, parts, strict=True))
        case "map":
            key_type, value_type = cql_type.of
            if key_type.scalar:
                return {text(key_type, k): plain(value_type, v, text) for k, v in value}
            return [[plain(key_type, k, text), plain(value_type, v, text)] for k, v in value]
        case "boolean":
            return value
        case "tinyint" | "smallint" | "int" | "bigint":
            return value
        case "float" | "double" if value == value and abs(value) != float("inf"):
            return json.loads(text(cql_type, value).replace("-0", "-0.0", int(value == 0)))
        case _:
            return text(cql_type, value)
