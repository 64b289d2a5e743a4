"""Exact numbers of varint and decimal columns, which are text in Arrow.

Fast path: Arrow's decimals of up to 76 digits, if all values of an array fit one at a common scale.
Slow path: Python's `Decimal`. Both give the same numbers without rounding.
"""

from __future__ import annotations

import decimal
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.query.errors import QueryError

#: Limit on the digits of a computed number: 1E+999999999 + 1 must not fill the memory.
DIGITS_MAX = 100_000
_DECIMAL128_DIGITS, _DECIMAL256_DIGITS = 38, 76
#: Longer texts are converted to their canonical form through `Decimal`.
_PLAIN_CHARACTERS_MAX = 37

CONTEXT = decimal.Context(
    prec=DIGITS_MAX,
    Emin=decimal.MIN_EMIN,
    Emax=decimal.MAX_EMAX,
    traps=[decimal.Inexact, decimal.Overflow, decimal.InvalidOperation, decimal.DivisionByZero],
)

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
KERNELS: dict[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


class Shape(NamedTuple):
    """Most digits before and after the point of any value; `plain`: no value has an exponent."""

    whole_digits: int
    scale: int
    plain: bool


def shape_of(texts: pa.Array) -> Shape:
    if pc.any(pc.match_substring(texts, "E")).as_py():
        return Shape(0, 0, False)
    fractions = scales_of_plain(texts)
    lengths = pc.binary_length(texts).fill_null(0).to_numpy()
    fraction = int(fractions.max(initial=0))
    # The point and the sign count as digits, so this is an upper bound.
    return Shape(int((lengths - fractions).max(initial=0)), fraction, True)


def scales_of_plain(texts: pa.Array) -> Any:
    """Return the digits after the point, as numpy int32; 0 for null. No value has an exponent."""
    dots = pc.find_substring(texts, ".").fill_null(-1).to_numpy()
    lengths = pc.binary_length(texts).fill_null(0).to_numpy()
    return np.where(dots >= 0, lengths - dots - 1, 0).astype(np.int32)


def scales_of(texts: pa.Array) -> pa.Array:
    """Return the scale of each value as int32, negative for values such as 1E+3; null for null."""
    if shape_of(texts).plain:
        found = pa.array(scales_of_plain(texts), pa.int32())
        return pc.if_else(texts.is_valid(), found, pa.scalar(None, pa.int32()))
    return pa.array([None if v is None else scale_of(v) for v in values_of(texts)], pa.int32())


def as_decimals(texts: pa.Array, *, scale: int = 0, spare_digits: int = 0) -> pa.Array | None:
    """Return the values in an Arrow decimal type, or None if no such type holds all of them.

    `scale`: digits after the point, at least; `spare_digits`: extra digits to leave before it.
    """
    shape = shape_of(texts)
    if not shape.plain:
        return None
    return _cast(texts, shape.whole_digits + spare_digits, max(scale, shape.scale))


def _cast(texts: pa.Array, whole_digits: int, scale: int) -> pa.Array | None:
    if whole_digits + scale <= _DECIMAL128_DIGITS:
        return texts.cast(pa.decimal128(_DECIMAL128_DIGITS, scale))
    if whole_digits + scale <= _DECIMAL256_DIGITS:
        return texts.cast(pa.decimal256(_DECIMAL256_DIGITS, scale))
    return None


def values_of(texts: pa.Array) -> list[Decimal | None]:
    return [None if text is None else Decimal(text) for text in texts.to_pylist()]


def scale_of(value: Decimal) -> int:
    return -int(value.as_tuple().exponent)


def one_zero(value: Decimal) -> Decimal:
    """Return `value`, with -0, which only `Decimal` has, changed to 0 of the same scale."""
    return value if value else value.copy_abs()


def add(left: Decimal, right: Decimal) -> Decimal:
    """Return the exact sum. Raises `QueryError` over `DIGITS_MAX` digits."""
    try:
        return CONTEXT.add(left, right)
    except decimal.DecimalException:
        raise too_long() from None


def divide(value: Decimal, by: Decimal, scale: int) -> Decimal:
    """Return `value / by`, rounded half to even to `scale` digits after the point."""
    # Whole numbers hold the quotient exactly, so that it is rounded once.
    numerator, denominator = _ratio(value)
    by_numerator, by_denominator = _ratio(by)
    top = numerator * by_denominator * 10 ** max(scale, 0)
    bottom = denominator * by_numerator * 10 ** max(-scale, 0)
    if bottom < 0:
        top, bottom = -top, -bottom
    quotient, rest = divmod(top, bottom)
    if 2 * rest > bottom or (2 * rest == bottom and quotient % 2):
        quotient += 1
    return rescaled(Decimal(quotient).scaleb(-scale, CONTEXT), scale)


def rescaled(value: Decimal, scale: int) -> Decimal:
    """Return the same number with `scale` digits after the point; it must not have more."""
    try:
        return value.quantize(Decimal((0, (1,), -scale)), context=CONTEXT)
    except decimal.DecimalException:
        raise too_long() from None


def too_long() -> QueryError:
    return QueryError(f"an exact number of this query needs more than {DIGITS_MAX:,} digits")


def _ratio(value: Decimal) -> tuple[int, int]:
    if abs(value.adjusted()) > DIGITS_MAX or abs(scale_of(value)) > DIGITS_MAX:
        raise too_long()
    return value.as_integer_ratio()


def canonical(texts: pa.Array) -> pa.Array:
    """Return texts that are equal exactly if their numbers are: without trailing zeros."""
    lengths = pc.binary_length(texts)
    if shape_of(texts).plain and (pc.max(lengths).as_py() or 0) <= _PLAIN_CHARACTERS_MAX:
        if pc.any(pc.match_substring(texts, ".")).as_py():
            texts = pc.replace_substring_regex(texts, r"(\.[0-9]*[1-9])0+$", r"\1")
            texts = pc.replace_substring_regex(texts, r"\.0*$", "")
        zeros = pc.equal(texts, "-0")
        return pc.if_else(zeros, "0", texts) if pc.any(zeros).as_py() else texts
    return pa.array(
        [None if v is None else canonical_text(v) for v in values_of(texts)], pa.string()
    )


def canonical_text(value: Decimal) -> str:
    if not value:
        return "0"
    short = value.normalize(CONTEXT)
    plain = scale_of(short) < 0 and short.adjusted() < _PLAIN_CHARACTERS_MAX
    return f"{short:f}" if plain else str(short)


def compare(operation: str, left: pa.Array, right: pa.Array | pa.Scalar) -> pa.Array:
    """Compare texts as numbers. `right` is as long as `left`, or one value that is not null."""
    other = pa.array([right.as_py()], pa.string()) if isinstance(right, pa.Scalar) else right
    shape, other_shape = shape_of(left), shape_of(other)
    if shape.plain and other_shape.plain:
        digits = max(shape.whole_digits, other_shape.whole_digits)
        scale = max(shape.scale, other_shape.scale)
        if _cast(other[:0], digits, scale) is not None:
            # Both get the same type: otherwise Arrow would make room for the sum of both.
            first, second = _cast(left, digits, scale), _cast(other, digits, scale)
            assert second is not None
            return KERNELS[operation](first, second[0] if other is not right else second)
    found = OPERATORS[operation]
    values: list[Decimal | None] = values_of(other)
    if other is not right:
        values *= len(left)
    return pa.array(
        [
            None if a is None or b is None else found(a, b)
            for a, b in zip(values_of(left), values, strict=True)
        ],
        pa.bool_(),
    )
