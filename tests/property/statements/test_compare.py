"""A value equals what the server stores of it, in any order of its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.cql.cells import Cells
from ringhaul.cql.types import CqlType
from ringhaul.statements.compare import differing
from tests.property.cql.nested_types import driver_bytes, types, values


def turned(kind: CqlType, value: Any) -> Any:
    """The value with its sets and maps in reverse order, which are the same to the server."""
    if value is None or not kind.of:
        return value
    match kind.name:
        case "vector":
            return value
        case "list":
            return [turned(kind.of[0], part) for part in value]
        case "set":
            return [turned(kind.of[0], part) for part in reversed(value)]
        case "map":
            of_key, of_value = kind.of
            return [(turned(of_key, k), turned(of_value, v)) for k, v in reversed(value)]
        case _:
            parts = zip(kind.of, value, strict=True)
            return tuple(turned(of, part) for of, part in parts)


def is_other(kind: CqlType, left: bytes, right: bytes) -> bool:
    expected = Cells.variable(pa.array([left], pa.binary()))
    found = differing(expected, pa.array([right], pa.binary()), kind, frozen=True)
    assert found.dtype == np.bool_
    return bool(found[0])


@given(st.data())
def test_the_order_of_sets_and_maps_does_not_matter(data: st.DataObject) -> None:
    kind = data.draw(types)
    value = data.draw(values(kind))
    assert not is_other(kind, driver_bytes(kind, value), driver_bytes(kind, turned(kind, value)))


def meant(kind: CqlType, value: Any) -> Any:
    """The value in a Python form that is equal for values that are equal to the server."""
    if value is None or kind.name == "vector" or not kind.of:
        return value if value is None else driver_bytes(kind, value)
    match kind.name:
        case "list":
            return tuple(meant(kind.of[0], part) for part in value)
        case "set":
            return frozenset(meant(kind.of[0], part) for part in value)
        case "map":
            of_key, of_value = kind.of
            return frozenset({meant(of_key, k): meant(of_value, v) for k, v in value}.items())
        case _:
            return tuple(meant(of, part) for of, part in zip(kind.of, value, strict=True))


@given(st.data())
def test_values_differ_where_they_mean_something_else(data: st.DataObject) -> None:
    kind = data.draw(types)
    left = data.draw(values(kind))
    right = data.draw(st.just(left) | values(kind) | st.just(turned(kind, left)))
    found = is_other(kind, driver_bytes(kind, left), driver_bytes(kind, right))
    assert found == (meant(kind, left) != meant(kind, right))
