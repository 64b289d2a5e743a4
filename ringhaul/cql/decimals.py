"""varint and decimal from text: whole numbers of any size, without and with a scale.

A varint is a minimal two's complement; a decimal is an int32 scale and the varint of all its
digits, so that 1.50 (scale 2) and 1.5 (scale 1) stay different values of the same number.
"""

import re

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.cql.boolean_numbers import number_hint
from ringhaul.cql.cells import Cells, fixed_binary
from ringhaul.cql.column import (
    Encoded,
    Mask,
    Rows,
    TextColumn,
    merge_variable,
    parse_left,
    quote,
)
from ringhaul.cql.long_numbers import integer_of
from ringhaul.cql.numbers import HEX_REAL, hex_decimal, plain_numbers, whole_numbers
from ringhaul.cql.text_format import USUAL, TextFormat
from ringhaul.cql.whole_numbers import whole_text

# Possessive, so that a mismatch costs no more than a match.
_DECIMAL = re.compile(r"([+-]?)(?:([0-9]++)(?:\.([0-9]*+))?|\.([0-9]++))(?:[eE]([+-]?[0-9]++))?")
#: At most 18 characters, so that the digits fit in an int64.
_FAST_DECIMAL = r"^-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)$"
_FAST_CHARACTERS_MAX = 18
_SCALE_MIN, _SCALE_MAX = -(2**31), 2**31 - 1
_DOT, _MINUS = 0x2E, 0x2D


def encode_varints(column: TextColumn, fmt: TextFormat) -> Encoded:
    column, misspelt = plain_numbers(column.trimmed(), "varint", fmt)
    values, done = whole_numbers(column)
    if done is None:
        return Encoded(Cells.variable(_minimal(values, None)), misspelt)
    left = np.flatnonzero(~done)
    left_values, bad = parse_left(column, left, "varint", lambda text: parse_varint(text, fmt), b"")
    taken = _minimal(values[done], None)
    merged = _merge(done, taken, left, left_values)
    return Encoded(Cells.variable(merged), misspelt + bad)


def encode_decimals(column: TextColumn, fmt: TextFormat) -> Encoded:
    column, misspelt = plain_numbers(column.trimmed(), "decimal", fmt)
    whole = _scaled(column)
    if whole is not None:
        return Encoded(Cells.variable(_minimal(*whole)), misspelt)
    done: Mask = column.matches(_FAST_DECIMAL) & (column.lengths <= _FAST_CHARACTERS_MAX)
    scaled = _scaled(column.filter(done))
    if scaled is None:  # impossible: the pattern matches only what can be read
        raise AssertionError("a decimal of at most 18 characters was not read")
    left = np.flatnonzero(~done)
    left_values, bad = parse_left(
        column, left, "decimal", lambda text: parse_decimal(text, fmt), b""
    )
    merged = _merge(done, _minimal(*scaled), left, left_values)
    return Encoded(Cells.variable(merged), misspelt + bad)


def parse_varint(text: str, fmt: TextFormat = USUAL) -> bytes:
    """Return the wire bytes of a varint. Raises `ValueError` with the reason."""
    return _pack(integer_of(whole_text(text, fmt)))


def parse_decimal(text: str, fmt: TextFormat = USUAL) -> bytes:
    """Return the wire bytes of a decimal. Raises `ValueError` with the reason."""
    match = _DECIMAL.fullmatch(text)
    if match is None and HEX_REAL.fullmatch(text):
        match = _DECIMAL.fullmatch(hex_decimal(text, fmt))
    if match is None:
        raise ValueError(f"{quote(text)} is not a decimal number{number_hint(text, fmt)}")
    sign, whole, fraction, bare_fraction, exponent = match.groups()
    fraction = bare_fraction or fraction or ""
    scale = len(fraction) - _small(exponent or "0")
    if not _SCALE_MIN <= scale <= _SCALE_MAX:
        raise ValueError(f"{quote(text)} has a scale outside {_SCALE_MIN}..{_SCALE_MAX}")
    unscaled = integer_of(sign + (whole or "") + fraction)
    return scale.to_bytes(4, "big", signed=True) + _pack(unscaled)


def _small(exponent: str) -> int:
    """Return an exponent; more than 18 digits become 10**18, which is out of range as well."""
    digits = exponent.lstrip("+-").lstrip("0") or "0"
    value = int(digits) if len(digits) <= 18 else 10**18
    return -value if exponent[0] == "-" else value


def _pack(value: int) -> bytes:
    bits = (value if value >= 0 else ~value).bit_length()
    return value.to_bytes(bits // 8 + 1, "big", signed=True)


def _scaled(column: TextColumn) -> tuple[NDArray[np.int64], NDArray[np.int32]] | None:
    """Return all digits as int64, and the number of digits after the point; None unless every value
    is plain and short."""
    data, offsets = column.data, column.offsets
    is_dot = data == _DOT
    if not ((data - np.uint8(0x30) <= 9) | is_dot | (data == _MINUS)).all():
        return None
    scales = np.zeros(len(column), np.int32)
    dots = np.flatnonzero(is_dot)
    if len(dots):
        rows = np.searchsorted(offsets, dots, side="right") - 1
        after = dots + 1
        after = after[after < offsets[rows + 1]]
        if (np.diff(rows) == 0).any() or (data[after] == _MINUS).any():
            return None  # two points in a value, or a minus after a point
        scales[rows] = offsets[rows + 1] - 1 - dots
        dots_before = np.zeros(len(offsets), np.int32)
        dots_before[rows + 1] = 1
        offsets = offsets - np.cumsum(dots_before, dtype=np.int32)
        data = np.frombuffer(data.tobytes().translate(None, b"."), np.uint8)
    try:
        unscaled = TextColumn(offsets, data).array().cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    return unscaled, scales


def _merge(
    done: Mask, taken: pa.BinaryArray, left: Rows, left_values: list[bytes]
) -> pa.BinaryArray:
    pieces = [(np.flatnonzero(done), taken), (left, pa.array(left_values, pa.binary()))]
    return merge_variable(pieces)


def _minimal(values: NDArray[np.int64], scales: NDArray[np.int32] | None) -> pa.BinaryArray:
    """Return each value as a minimal two's complement, after its int32 scale if it has one."""
    magnitudes = values ^ (values >> 63)  # the complement of a negative value
    widths = np.ones(len(values), np.uint8)
    for width in range(1, 8):
        widths += magnitudes >= 1 << (8 * width - 1)
    widest = int(widths.max()) if len(widths) else 1
    head = 0 if scales is None else 4
    wire = np.empty((len(values), head + widest), np.uint8)
    if scales is not None:
        wire[:, :4] = scales.astype(">i4").view(np.uint8).reshape(-1, 4)
    wire[:, head:] = values.astype(">i8").view(np.uint8).reshape(-1, 8)[:, 8 - widest :]
    if (widths == widest).all():
        return fixed_binary(wire.view(np.dtype((np.void, head + widest))).reshape(-1))
    kept = np.empty(wire.shape, np.bool_)
    kept[:, :head] = True
    kept[:, head:] = np.arange(widest, dtype=np.uint8) >= (np.uint8(widest) - widths)[:, None]
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(widths.astype(np.int32) + head, out=offsets[1:])
    return TextColumn(offsets, wire[kept]).array()
