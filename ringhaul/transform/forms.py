"""What functions give, in the types that columns are to have, or why it has no form there. Pure."""

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
from ringhaul.transform.exact import exact_array, exact_cast
from ringhaul.transform.values import arrow_column

#: What tells that a value has no form in the type of its column.
_NO_FORM = (pa.ArrowException, ValueError, TypeError, ArithmeticError, LookupError)
#: What a function of rows gets of times of day.
_TIMES = {datetime.time, str, type(None)}


def unchanged(values: Sequence[Any], arrow: pa.DataType | None) -> pa.Array:
    """Python values as an array of the type that their column had before a function of rows, if
    they are still values of it; else of the type that they have, see `arrow_column`."""
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
    # NaN is not itself.
    return type(one) is type(other) and (one == other or one != one)


def in_form(values: Any, arrow: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
    """Values as an array of a type, null where they cannot be, and why."""
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
    # Arrow casts what is behind a slice of lists, too: one is taken out.
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
    """A Python value in a form that Arrow takes for its type."""
    if isinstance(value, uuid.UUID):
        return str(value) if pa.types.is_string(arrow) else value.bytes
    if pa.types.is_string(arrow) and isinstance(value, int | float | Decimal):
        return str(value)
    if arrow == pa.time64("ns") and isinstance(value, str):  # as `each_row` tells nanoseconds
        with suppress(ValueError):
            return parse_time(value)
    return value
