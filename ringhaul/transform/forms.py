"""Convert results of functions to the types of their columns, or say why they do not fit. Pure."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ringhaul.cql.temporal import parse_time
from ringhaul.transform.errors import reason_of
from ringhaul.transform.exact_arrays import exact_array, exact_cast
from ringhaul.transform.values import arrow_column

#: Exceptions that mean that a value cannot be represented in the type of its column.
_NO_FORM = (pa.ArrowException, ValueError, TypeError, ArithmeticError, LookupError)
#: Types that a function of rows gets for a time of day.
_TIMES = {datetime.time, str, type(None)}


def unchanged(values: Sequence[Any], arrow: pa.DataType | None) -> pa.Array:
    """Return Python values as an array of the type that their column had before a function of rows,
    if they still fit it exactly; else of an inferred type, see `arrow_column`."""
    if arrow is None:
        return arrow_column(values)
    with suppress(*_NO_FORM):
        if arrow == pa.time64("ns") and set(map(type, values)) <= _TIMES:
            return exact_array([_plain(value, arrow) for value in values], arrow)
        found = pa.array(values, arrow)
        if all(map(_same, found.to_pylist(), values)):
            return found
    return arrow_column(values)


def _same(one: Any, other: Any) -> bool:
    # NaN is not equal to itself.
    return type(one) is type(other) and (one == other or one != one)


def in_form(values: Any, arrow: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
    """Return values as an array of a type, with null where one does not fit, and the reasons by
    row."""
    convert: Callable[[Any, pa.DataType], pa.Array] = exact_cast
    if isinstance(values, list):
        values, convert = [_plain(value, arrow) for value in values], exact_array
    elif values.type == arrow:
        return values, {}
    try:
        return convert(values, arrow), {}
    except _NO_FORM:
        return _one_by_one(values, arrow, convert)


def _one_by_one(
    values: Any, arrow: pa.DataType, convert: Callable[[Any, pa.DataType], pa.Array]
) -> tuple[pa.Array, dict[int, str]]:
    nothing = pa.nulls(1, arrow)
    arrays, bad = [], {}
    # Arrow also casts the values outside a slice of lists, so each element is copied out.
    taken = isinstance(values, pa.Array) and pa.types.is_nested(arrow)
    for row in range(len(values)):
        one = values.take(pa.array([row])) if taken else values[row : row + 1]
        try:
            arrays.append(convert(one, arrow))
        except _NO_FORM as error:
            arrays.append(nothing)
            bad[row] = reason_of(error)
    return pa.concat_arrays(arrays), bad


def _plain(value: Any, arrow: pa.DataType) -> Any:
    """Return a Python value in a form that Arrow accepts for the type."""
    if isinstance(value, uuid.UUID):
        return str(value) if pa.types.is_string(arrow) else value.bytes
    if pa.types.is_string(arrow) and isinstance(value, int | float | Decimal):
        return str(value)
    if arrow == pa.time64("ns") and isinstance(value, str):  # `each_row` passes nanoseconds as text
        with suppress(ValueError):
            return parse_time(value)
    return value
