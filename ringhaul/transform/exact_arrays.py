"""Convert Python and Arrow values to Arrow types, refusing values that would change. Pure.

Arrow silently makes 3 of 3.7 for an int32, infinity of 1e300 for a float, and a date of any time:
a file would hold another value than the function returned, unnoticed. A date equals its midnight in
UTC, so only a timestamp at midnight becomes a date. As in a load, a Python datetime finer than the
milliseconds of a timestamp is floored.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: The least number that a float rounds to infinity: halfway from the greatest float to 2**128.
_FLOAT_END = 2.0**128 - 2.0**103
_FRACTIONS = (float, Decimal, np.floating)


def exact_array(values: Sequence[Any], arrow: pa.DataType) -> pa.Array:
    """Return Python values as an array of a type.

    Raises `ValueError`, `TypeError`, `ArithmeticError` or Arrow's exceptions if a value cannot be
    represented.
    """
    _refuse_loss(values, arrow)
    return pa.array(values, arrow)


def exact_cast(values: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Cast an array to another type. Raises `ValueError` or Arrow's exceptions as `exact_array`."""
    values = _decoded(values)
    if _has_views(values.type):
        raise ValueError(f"a {values.type} is not a {arrow}: cast it")
    found = values.cast(arrow)
    _refuse_changed(values, arrow)
    return found


def _has_views(arrow: pa.DataType) -> bool:
    """Whether a type holds list views, which Arrow casts to lists with other lists' values."""
    if pa.types.is_list_view(arrow) or pa.types.is_large_list_view(arrow):
        return True
    return any(_has_views(arrow.field(place).type) for place in range(arrow.num_fields))


def _decoded(values: pa.Array) -> pa.Array:
    """Return the values of a dictionary-encoded or run-end-encoded array; others unchanged."""
    if pa.types.is_dictionary(values.type):
        return values.dictionary_decode()
    return pc.run_end_decode(values) if pa.types.is_run_end_encoded(values.type) else values


def _refuse_changed(values: pa.Array, arrow: pa.DataType) -> None:
    """Raise `ValueError` for the first value that a cast to the type silently changed."""
    values = _decoded(values)
    if pa.types.is_nested(arrow):
        for inner, kind in _children(values, arrow):
            _refuse_changed(inner, kind)
    elif pa.types.is_timestamp(values.type) and arrow in (pa.date32(), pa.time64("ns")):
        times = values.filter(_more_than_dates(values)) if arrow == pa.date32() else values
        for time in times.drop_null()[:1].cast(pa.string()):
            what = "a date" if arrow == pa.date32() else "a time of day"
            raise ValueError(f"{time} is more than {what}: cast the column")
    elif arrow == pa.float32() and not _is_small(values.type):
        numbers = values.cast(pa.float64(), safe=False)
        large = pc.greater_equal(pc.abs(numbers), _FLOAT_END)
        for number in numbers.filter(pc.and_(large, pc.is_finite(numbers)))[:1]:
            _refuse_infinity(number.as_py())


def _is_small(arrow: pa.DataType) -> bool:
    """Whether all numbers of the type fit into a float, or Arrow reports numbers that do not."""
    return arrow in (pa.float16(), pa.float32()) or bool(pa.types.is_integer(arrow))


def _children(values: pa.Array, arrow: pa.DataType) -> Iterator[tuple[pa.Array, pa.DataType]]:
    """Yield the values inside nested values that are not null, with their target types."""
    if pa.types.is_null(values.type):
        return
    if pa.types.is_map(arrow):
        pair = pa.struct([("key", values.type.key_type), ("value", values.type.item_type)])
        keys, items = values.cast(pa.list_(pair)).flatten().flatten()
        yield keys, arrow.key_type
        yield items, arrow.item_type
    elif pa.types.is_struct(arrow):
        inner = dict(zip(values.type.names, values.flatten(), strict=True))
        yield from ((inner[field.name], field.type) for field in arrow if field.name in inner)
    else:
        yield values.flatten(), arrow.value_type


def _more_than_dates(values: pa.Array) -> pa.BooleanArray:
    """Return which timestamps are not the midnight (UTC) of the date that Arrow makes of them."""
    dates = values.cast(pa.date32()).cast(pa.timestamp(values.type.unit))
    return pc.not_equal(dates, values.view(dates.type))


def _refuse_loss(values: Sequence[Any], arrow: pa.DataType) -> None:
    """Raise `ValueError` for the first value that the type would change."""
    if pa.types.is_nested(arrow):
        for inner, kind in _inner([value for value in values if value is not None], arrow):
            _refuse_loss(inner, kind)
        return
    for suspects, applies, refuse in _CHECKS:
        # The set of types is checked first: most columns hold no value that needs a check.
        if applies(arrow) and any(issubclass(kind, suspects) for kind in set(map(type, values))):
            for value in values:
                if isinstance(value, suspects):
                    refuse(value)


def _inner(
    values: Sequence[Any], arrow: pa.DataType
) -> Iterator[tuple[Sequence[Any], pa.DataType]]:
    """Yield the values inside nested values, with their types. Raises `TypeError` for a value that
    is not nested."""
    if pa.types.is_map(arrow):
        pairs = [pair for value in values for pair in _pairs(value)]
        yield [key for key, _ in pairs], arrow.key_type
        yield [item for _, item in pairs], arrow.item_type
    elif pa.types.is_struct(arrow):
        for place, field in enumerate(arrow):
            yield [_field(value, place, field.name) for value in values], field.type
    else:
        yield [item for value in values for item in value], arrow.value_type


def _pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return value.items()
    return [
        (pair["key"], pair["value"]) if isinstance(pair, Mapping) else (pair[0], pair[1])
        for pair in value
    ]


def _field(value: Any, place: int, name: str) -> Any:
    if isinstance(value, tuple):
        return value[place] if place < len(value) else None
    return (value if isinstance(value, Mapping) else dict(value)).get(name)


def _refuse_fraction(value: Any) -> None:
    whole = value.to_integral_value() == value if isinstance(value, Decimal) else value.is_integer()
    if not whole:
        raise ValueError(f"{value} is not a whole number")


def _refuse_time(value: datetime.datetime) -> None:
    zone = None if value.tzinfo is None else datetime.UTC
    if value != datetime.datetime.combine(value.date(), datetime.time(), zone):
        raise ValueError(f"{value} is more than a date: give its date()")


def _refuse_zone(value: datetime.time) -> None:
    if value.tzinfo is not None:
        raise ValueError(f"{value} has a time zone, but a time of day has none: remove it")


def _refuse_infinity(value: Any) -> None:
    if math.isfinite(value) and abs(value) >= _FLOAT_END:
        raise ValueError(f"{value} is outside the range of a float")


def _is_whole(arrow: pa.DataType) -> bool:
    """Whether a type stores whole numbers. Arrow's times and dates do, and accept numbers."""
    return bool(pa.types.is_integer(arrow) or pa.types.is_temporal(arrow))


#: Python types, a test for the Arrow types that may change them, a check that raises if one does.
_CHECKS: Sequence[
    tuple[type | tuple[type, ...], Callable[[pa.DataType], bool], Callable[[Any], None]]
] = (
    (_FRACTIONS, _is_whole, _refuse_fraction),
    (datetime.datetime, pa.types.is_date32, _refuse_time),
    (datetime.time, pa.types.is_time64, _refuse_zone),
    (_FRACTIONS, pa.types.is_float32, _refuse_infinity),
)
