"""CQL types of any depth, with values, their JSON, and the driver's serialisers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from cassandra import cqltypes
from cassandra.util import Duration
from hypothesis import strategies as st

from ringhaul.cql.types import CqlType
from tests.property.cql.test_against_driver import CASES, integers

PROTOCOL = 4

durations = st.tuples(st.sampled_from([1, -1]), integers(32), integers(32), integers(64)).map(
    lambda parts: tuple(parts[0] * abs(part + (part < 0)) for part in parts[1:])
)


def duration_text(value: tuple[int, int, int]) -> str:
    months, days, nanoseconds = value
    sign = "-" if min(value) < 0 else ""
    return f"{sign}{abs(months)}mo{abs(days)}d{abs(nanoseconds)}ns"


Case = tuple[st.SearchStrategy[Any], Callable[[Any], str], Any, Callable[[Any], Any]]
SCALARS: dict[str, Case] = CASES | {
    "duration": (durations, duration_text, cqltypes.DurationType, lambda parts: Duration(*parts)),
}
#: Scalars whose JSON may be a number as well as a string.
NUMBERS = {"tinyint", "smallint", "int", "bigint", "varint", "float", "double", "decimal"}
#: ... and keys that differ by their text.
KEYS = ["ascii", "text", "int", "bigint", "uuid", "boolean", "date", "blob"]

scalar_types = st.sampled_from(sorted(SCALARS)).map(CqlType)
field_names = st.lists(st.text(max_size=5), min_size=1, max_size=3, unique=True).map(tuple)


def _containers(inner: st.SearchStrategy[CqlType]) -> st.SearchStrategy[CqlType]:
    keys = st.one_of(st.sampled_from(KEYS).map(CqlType), inner)
    return st.one_of(
        inner.map(lambda of: CqlType("list", (of,))),
        inner.map(lambda of: CqlType("set", (of,))),
        st.tuples(keys, inner).map(lambda of: CqlType("map", of)),
        st.lists(inner, min_size=1, max_size=3).map(lambda of: CqlType("tuple", tuple(of))),
        field_names.flatmap(
            lambda names: st.tuples(*[inner] * len(names)).map(
                lambda of: CqlType("udt", of, tuple(names))
            )
        ),
        st.tuples(inner, st.integers(1, 3)).map(lambda t: CqlType("vector", (t[0],), size=t[1])),
    )


types = st.recursive(scalar_types, _containers, max_leaves=4)
nested_types = _containers(types)


def values(kind: CqlType) -> st.SearchStrategy[Any]:
    """Values in Python: scalars as in `CASES`, arrays as lists, maps as lists of pairs."""
    if kind.name in SCALARS:
        return SCALARS[kind.name][0]
    if kind.name in ("list", "set"):
        return st.lists(values(kind.of[0]), max_size=3)
    if kind.name == "map":
        pairs = st.lists(st.tuples(values(kind.of[0]), values(kind.of[1])), max_size=3)
        # A map has no key twice.
        return pairs.map(lambda found: list({repr(key): (key, v) for key, v in found}.values()))
    if kind.name == "vector":
        return st.lists(values(kind.of[0]), min_size=kind.size, max_size=kind.size)
    return st.tuples(*(st.none() | values(of) for of in kind.of))


def to_json(kind: CqlType, value: Any, *, as_object: bool = True, as_number: bool = False) -> Any:
    """The JSON form; `spelt` writes numbers, so that their digits are kept."""

    def inner(of: CqlType, item: Any) -> Any:
        return to_json(of, item, as_object=as_object, as_number=as_number)

    if value is None:
        return None
    if kind.name in SCALARS:
        text = SCALARS[kind.name][1](value)
        if kind.name == "boolean":
            return value
        if kind.name in NUMBERS and as_number and text[-1].isdigit():
            # A decimal such as 1E+3 is a JSON number, too; inf and nan are not.
            return Number(text)
        return text
    if kind.name in ("list", "set", "vector"):
        return [inner(kind.of[0], item) for item in value]
    if kind.name == "map":
        key_type, value_type = kind.of
        if as_object and key_type.name in SCALARS:
            spell = SCALARS[key_type.name][1]
            return {
                str(key).lower() if key_type.name == "boolean" else spell(key): inner(
                    value_type, item
                )
                for key, item in value
            }
        return [[inner(key_type, key), inner(value_type, item)] for key, item in value]
    if kind.name == "tuple":
        return [inner(of, item) for of, item in zip(kind.of, value, strict=True)]
    return {
        name: inner(of, item)
        for name, of, item in zip(kind.fields, kind.of, value, strict=True)
        if item is not None
    }


class Number(str):
    """Digits that are written into JSON without quotes."""


def spelt(value: Any) -> str:
    """JSON text that keeps the digits of `Number`; `json.dumps` would not."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{json.dumps(name)}: {spelt(item)}" for name, item in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(map(spelt, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def to_literal(kind: CqlType, value: Any, *, bare: bool = False) -> str:
    """The CQL literal. `bare`: like COPY, with quotes only for texts, and nulls empty."""

    def inner(of: CqlType, item: Any) -> str:
        return to_literal(of, item, bare=bare)

    if value is None:
        return "" if bare else "null"
    if kind.name in SCALARS:
        text = SCALARS[kind.name][1](value)
        if bare and kind.name not in ("ascii", "text", "varchar"):
            return text
        return "'" + text.replace("'", "''") + "'"
    if kind.name == "map":
        key_type, value_type = kind.of
        pairs = (f"{inner(key_type, key)}: {inner(value_type, item)}" for key, item in value)
        return "{" + ", ".join(pairs) + "}"
    if kind.name in ("list", "set", "vector"):
        items = ", ".join(inner(kind.of[0], item) for item in value)
        return f"{{{items}}}" if kind.name == "set" else f"[{items}]"
    items = [inner(of, item) for of, item in zip(kind.of, value, strict=True)]
    if kind.name == "tuple":
        return f"({', '.join(items)})"
    names = ('"' + name.replace('"', '""') + '"' for name in kind.fields)
    return "{" + ", ".join(f"{name}: {item}" for name, item in zip(names, items, strict=True)) + "}"


def driver_bytes(kind: CqlType, value: Any) -> bytes:
    """The bytes that the driver sends for a value."""
    return bytes(driver_type(kind).to_binary(driver_value(kind, value), PROTOCOL))


def driver_type(kind: CqlType) -> Any:
    if kind.name in SCALARS:
        return SCALARS[kind.name][2]
    of = [driver_type(inner) for inner in kind.of]
    if kind.name == "vector":
        attributes = {"vector_size": kind.size, "subtype": of[0]}
        return type("Vector", (cqltypes.VectorType,), attributes)
    if kind.name == "udt":
        # As a tuple: the driver's class for the type needs names that are Python identifiers.
        return cqltypes.TupleType.apply_parameters(of)
    classes = {
        "list": cqltypes.ListType,
        "set": cqltypes.SetType,
        "map": cqltypes.MapType,
        "tuple": cqltypes.TupleType,
    }
    return classes[kind.name].apply_parameters(of)


def driver_value(kind: CqlType, value: Any) -> Any:
    if value is None:
        return None
    if kind.name in SCALARS:
        return SCALARS[kind.name][3](value)
    if kind.name in ("list", "set", "vector"):
        return [driver_value(kind.of[0], item) for item in value]
    if kind.name == "map":
        return Pairs((driver_value(kind.of[0], k), driver_value(kind.of[1], v)) for k, v in value)
    return tuple(driver_value(of, item) for of, item in zip(kind.of, value, strict=True))


class Pairs(list):  # type: ignore[type-arg]
    """A map for the driver's serialiser, with keys that need not be hashable."""

    def items(self) -> Pairs:
        return self
