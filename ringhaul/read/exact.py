"""Values of Python and of Arrow to Arrow types, but none that a type would change. Pure.

Arrow makes 3 of 3.7 where an int32 is wanted, infinity of 1e300 for a float, and a date of any
time: a file would have another value than a function gave, and nobody would know.
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

#: From here on a number becomes infinity as a float: halfway between the greatest one and 2**128.
_FLOAT_END = 2.0**128 - 2.0**103
_FRACTIONS = (float, Decimal, np.floating)


def exact_array(values: Sequence[Any], arrow: pa.DataType) -> pa.Array:
    """Python values as an array of a type.

    Raises `ValueError`, `TypeError`, `ArithmeticError` or Arrow's exceptions if one has no form.
    """
    _refuse_loss(values, arrow)
    return pa.array(values, arrow)


def exact_cast(values: pa.Array, arrow: pa.DataType) -> pa.Array:
    """An array as one of another type. Raises `ValueError` or Arrow's exceptions as above."""
    of_time = pa.types.is_timestamp(values.type) and values.null_count < len(values)
    if of_time and arrow in (pa.date32(), pa.time64("ns")):
        raise ValueError(f"a {values.type} is more than a {arrow} holds: cast it")
    found = values.cast(arrow)
    narrowed = arrow == pa.float32() and values.type == pa.float64()
    if narrowed and pc.any(pc.xor(pc.is_inf(values), pc.is_inf(found))).as_py():
        raise ValueError("a number is outside the range of a float")
    return found


def _refuse_loss(values: Sequence[Any], arrow: pa.DataType) -> None:
    """Raise `ValueError` for the first value that the type would change."""
    if pa.types.is_nested(arrow):
        for inner, kind in _inner([value for value in values if value is not None], arrow):
            _refuse_loss(inner, kind)
        return
    for suspects, applies, refuse in _CHECKS:
        # What a column's values are is asked first: most have none that needs a look.
        if applies(arrow) and any(issubclass(kind, suspects) for kind in set(map(type, values))):
            for value in values:
                if isinstance(value, suspects):
                    refuse(value)


def _inner(
    values: Sequence[Any], arrow: pa.DataType
) -> Iterator[tuple[Sequence[Any], pa.DataType]]:
    """The values within values, by their types. Raises `TypeError` where there can be none."""
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
    raise ValueError(f"{value} is more than a date: give its date()")


def _refuse_infinity(value: Any) -> None:
    if math.isfinite(value) and abs(value) >= _FLOAT_END:
        raise ValueError(f"{value} is outside the range of a float")


def _is_whole(arrow: pa.DataType) -> bool:
    """Arrow's times and dates are whole numbers, too, and it takes numbers for them."""
    return bool(pa.types.is_integer(arrow) or pa.types.is_temporal(arrow))


#: Python types, the Arrow types that may change values of these, and what raises if one does.
_CHECKS: Sequence[
    tuple[type | tuple[type, ...], Callable[[pa.DataType], bool], Callable[[Any], None]]
] = (
    (_FRACTIONS, _is_whole, _refuse_fraction),
    (datetime.datetime, pa.types.is_date32, _refuse_time),
    (_FRACTIONS, pa.types.is_float32, _refuse_infinity),
)
