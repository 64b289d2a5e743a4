"""Whole numbers of fixed width, floating point and booleans from text.

The fast pass is Arrow's own number parser, after a check of the characters: by itself Arrow also
accepts hexadecimal whole numbers and words for infinity.
"""

import functools
import math
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.cql.boolean_numbers import number_hint, with_numbers
from ringhaul.cql.cells import Cells
from ringhaul.cql.column import BadValue, Encoded, Mask, TextColumn, parse_left, quote
from ringhaul.cql.hints import hint, known, reading
from ringhaul.cql.text_format import USUAL, TextFormat
from ringhaul.cql.whole_numbers import whole_text

#: Type -> its big-endian numpy type.
_INTEGERS = {"tinyint": ">i1", "smallint": ">i2", "int": ">i4", "bigint": ">i8"}
# Possessive, so that a mismatch costs no more than a match.
_REAL = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
#: Matches only numbers that fit in an int64.
_FAST_WHOLE = r"^-?(?:[0-9]{1,18}|[1-8][0-9]{18})$"
_FAST_REAL = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?$"
#: A hexadecimal number as C and Java write it. `0x` alone is an empty value.
HEX_REAL = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]++(?:\.[0-9a-fA-F]*+)?|\.[0-9a-fA-F]++)(?:[pP][+-]?[0-9]{1,9})?"
)
#: A double has 53 bits: at most 15 such digits between zeros.
_HEX_DIGITS_MAX = 15
_LARGEST = {"float": float(np.finfo(np.float32).max), "double": float(np.finfo(np.float64).max)}
_WORDS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}


def encode_integers(column: TextColumn, cql_type: str, fmt: TextFormat) -> Encoded:
    """Encode tinyint, smallint, int or bigint."""
    column, misspelt = plain_numbers(column.trimmed(), cql_type, fmt)
    wire = np.dtype(_INTEGERS[cql_type])
    low, high = int(np.iinfo(wire).min), int(np.iinfo(wire).max)
    values, done = whole_numbers(column)
    bad: list[BadValue] = []
    if done is not None or (len(values) and not low <= values.min() <= values.max() <= high):
        inside = (values >= low) & (values <= high)
        left = np.flatnonzero(~inside if done is None else ~(inside & done))
        left_values, bad = parse_left(
            column, left, cql_type, lambda text: _parse_integer(text, low, high, fmt), 0
        )
        values = values.copy()
        values[left] = left_values
    return Encoded(Cells.fixed(values.astype(wire)), misspelt + bad)


def encode_floats(column: TextColumn, cql_type: str, fmt: TextFormat) -> Encoded:
    """Encode float (rounded once, directly from the text) or double."""
    column, misspelt = plain_numbers(column.trimmed(), cql_type, fmt)
    native, wire = (np.float32, ">f4") if cql_type == "float" else (np.float64, ">f8")
    values, done = _reals(column, native)
    inside = np.isfinite(values)
    bad: list[BadValue] = []
    if done is not None or not inside.all():
        left = np.flatnonzero(~inside if done is None else ~(inside & done))
        left_values, bad = parse_left(
            column, left, cql_type, lambda text: parse_real(text, cql_type, fmt), 0.0
        )
        values = values.copy()
        values[left] = left_values
    return Encoded(Cells.fixed(values.astype(wire)), misspelt + bad)


def encode_booleans(column: TextColumn, fmt: TextFormat) -> Encoded:
    """Encode booleans as one byte, 1 or 0, by the words of `fmt`."""
    column = column.trimmed()
    true_words = {form for word in fmt.true_words for form in _cases(word)}
    false_words = {form for word in fmt.false_words for form in _cases(word)}
    words = pa.array([*true_words, *false_words], pa.binary())
    codes = pc.index_in(column.array(), value_set=words)
    if not codes.null_count:
        return Encoded(Cells.fixed((codes.to_numpy() < len(true_words)).astype(np.uint8)), [])
    filled = codes.fill_null(-1).to_numpy()
    values = ((filled >= 0) & (filled < len(true_words))).astype(np.uint8)
    left = np.flatnonzero(filled < 0)
    left_values, bad = parse_left(
        column, left, "boolean", lambda text: _parse_boolean(text, fmt), False
    )
    values[left] = left_values
    return Encoded(Cells.fixed(values), bad)


def whole_numbers(column: TextColumn) -> tuple[NDArray[np.int64], Mask | None]:
    """Return values as int64, 0 if unreadable, and a mask of the values read (None: all)."""
    data = column.data
    if ((data - np.uint8(0x30) <= 9) | (data == 0x2D)).all():
        try:
            return column.array().cast(pa.int64()).to_numpy(), None
        except pa.ArrowInvalid:
            pass
    return _cast_matching(column, _FAST_WHOLE, np.int64)


def plain_numbers(
    column: TextColumn, cql_type: str, fmt: TextFormat
) -> tuple[TextColumn, list[BadValue]]:
    """Return the column with decimal points and no thousands separators, and misspelt values.

    Words for booleans become numbers first, if that is accepted.

    Thousands separators must stand between groups of three digits, the first of which does not
    begin with a zero, so that "12,50" is never read as 1250, nor "0,125" as 125.
    """
    column = with_numbers(column, fmt)
    if fmt.plain_numbers:
        return column, []
    point, thousands = (
        re.escape(fmt.decimal_sep),
        re.escape(fmt.thousands_sep),
    )
    # A point in a hexadecimal number stays a point.
    hexadecimal = (
        r"|0[xX][0-9a-fA-F.]+(?:[pP][+-]?[0-9]+)?"
        if fmt.accepts("hex-floats") and fmt.decimal_sep == "."
        else ""
    )
    grouped = rf"[1-9][0-9]{{0,2}}(?:{thousands}[0-9]{{3}})+|" if thousands else ""
    spelt = column.matches(
        rf"^[+-]?(?:(?:{grouped}[0-9]*)(?:{point}[0-9]*)?(?:[eE][+-]?[0-9]+)?|[A-Za-z]*{hexadecimal})$"
    )
    array = column.array()
    if thousands:
        array = pc.replace_substring(array, fmt.thousands_sep.encode(), b"")
    array = pc.replace_substring(array, fmt.decimal_sep.encode(), b".")
    wanted = f'with decimal separator "{fmt.decimal_sep}"' + (
        f' and thousands separator "{fmt.thousands_sep}"' if thousands else ""
    )

    def refuse(text: str) -> None:
        raise ValueError(f"{quote(text)} is not a number {wanted}{number_hint(text, fmt)}")

    left = np.flatnonzero(~spelt)
    misspelt = parse_left(column, left, cql_type, refuse, None)[1] if len(left) else []
    if misspelt:
        # These rows are bad already; any valid number prevents reporting them twice.
        array = pc.if_else(pa.array(spelt), array, pa.scalar(b"0", pa.binary()))
    return TextColumn.of(array), misspelt


def parse_real(text: str, cql_type: str, fmt: TextFormat = USUAL) -> float:
    """Parse a float or double. Raises `ValueError` with the reason."""
    word = text.lower().removeprefix("-").removeprefix("+")
    if word in _WORDS and not (word == "nan" and len(text) != 3) and text[:2] != "-+":
        return -_WORDS[word] if text[0] == "-" else _WORDS[word]
    if HEX_REAL.fullmatch(text):
        value = _hex_real(text, cql_type, fmt)
    elif not _REAL.fullmatch(text):
        raise ValueError(f"{quote(text)} is not a number{number_hint(text, fmt)}")
    else:
        value = float(text)
        if cql_type == "float":
            value = _nearest_float32(text, value)
    if math.isinf(value):
        if fmt.overflow == "clamp":
            return math.copysign(_LARGEST[cql_type], value)
        raise ValueError(f"{quote(text)} is outside the range of a {cql_type}")
    return value


def hex_decimal(text: str, fmt: TextFormat = USUAL) -> str:
    """Return a hexadecimal number, which must be a double exactly, as the shortest decimal."""
    value = _double_of_hex(text, fmt, functools.partial(hex_decimal, text))
    if math.isinf(value):
        raise ValueError(f"{quote(text)} is outside the range of a double, in which it is read")
    digits = text.lower().lstrip("+-").removeprefix("0x").partition("p")[0].replace(".", "")
    kept = digits.strip("0")
    held = abs(value).as_integer_ratio()[0]
    if kept and (not held or len(kept) > _HEX_DIGITS_MAX or _odd(held) != _odd(int(kept, 16))):
        raise ValueError(f"{quote(text)} has more digits than a double, in which it is read")
    return repr(value)


def _odd(number: int) -> int:
    """Return a number, not 0, without its factors of 2, which only move the point."""
    return number // (number & -number)


def _double_of_hex(text: str, fmt: TextFormat, read: Callable[[TextFormat], object]) -> float:
    """Parse a hexadecimal number, rounded to a double. `read`: parser by format, for the hint."""
    if not fmt.accepts("hex-floats"):
        found = hint([reading({"accept": "hex-floats"}, fmt, read)])
        raise ValueError(f"{quote(text)} is not a number{found}")
    try:
        return float.fromhex(text)
    except OverflowError:
        return -math.inf if text[0] == "-" else math.inf


def _hex_real(text: str, cql_type: str, fmt: TextFormat) -> float:
    """Parse a hexadecimal number, rounded to a double and then to a float."""
    value = _double_of_hex(text, fmt, functools.partial(parse_real, text, cql_type))
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(value)) if cql_type == "float" else float(value)


def _nearest_float32(text: str, value: float) -> float:
    """Round `text`, whose nearest double is `value`, once to the nearest float32.

    Rounding the double again can be wrong only if it lies exactly between two float32s, as the
    text's number may lie on either side.
    """
    if math.isinf(value):
        return value
    with np.errstate(over="ignore", under="ignore"):
        single = np.float32(value)
        if float(single) == value or math.isinf(single):
            return float(single)
        other = np.nextafter(single, np.float32(math.inf if value > float(single) else -math.inf))
    middle = (Fraction(float(single)) + Fraction(float(other))) / 2 if np.isfinite(other) else None
    if middle is None or Fraction(value) != middle:
        return float(single)
    exact = Decimal(text)
    edge = Decimal(value)  # exact: value is the middle
    if exact == edge:
        return float(single)
    low, high = sorted((float(single), float(other)))
    return high if exact > edge else low


def _reals(column: TextColumn, native: Any) -> tuple[NDArray[Any], Mask | None]:
    data = column.data
    known = data - np.uint8(0x30) <= 9
    for character in b"+-.eE":
        known |= data == character
    if known.all():
        try:
            return column.array().cast(pa.from_numpy_dtype(native)).to_numpy(), None
        except pa.ArrowInvalid:
            pass
    return _cast_matching(column, _FAST_REAL, native)


def _cast_matching(column: TextColumn, pattern: str, native: Any) -> tuple[NDArray[Any], Mask]:
    done = column.matches(pattern)
    values = np.zeros(len(column), native)
    values[done] = column.filter(done).array().cast(pa.from_numpy_dtype(native)).to_numpy()
    return values, done


def _parse_integer(text: str, low: int, high: int, fmt: TextFormat) -> int:
    spelt = whole_text(text, fmt, (low, high))
    digits = spelt.lstrip("+-").lstrip("0") or "0"
    value = int(digits) if len(digits) <= 20 else 10**20
    value = -value if spelt[0] == "-" else value
    if not low <= value <= high:
        if fmt.overflow == "clamp":
            return low if value < low else high
        raise ValueError(f"{quote(text)[1:-1]} is outside {low}..{high}")
    return value


def _parse_boolean(text: str, fmt: TextFormat) -> bool:
    word = text.casefold()
    if word in {true_word.casefold() for true_word in fmt.true_words}:
        return True
    if word in {false_word.casefold() for false_word in fmt.false_words}:
        return False
    number = _whole_word(text)
    if number in fmt.true_words + fmt.false_words:
        if fmt.accepts("fractions"):
            return number in fmt.true_words
        found = hint([known({"accept": "fractions"}, number)])
    else:
        found = ""
    raise ValueError(
        f"{quote(text)} is not one of the words for true ({', '.join(fmt.true_words)}) "
        f"or false ({', '.join(fmt.false_words)}){found}"
    )


_FRACTIONS = replace(USUAL, accept=("fractions",))


def _whole_word(text: str) -> str:
    """Return a number without its fraction of zero: 1 for 1.0; other texts unchanged."""
    if len(text) > 50:
        return text
    try:
        return str(int(whole_text(text, _FRACTIONS)))
    except ValueError:
        return text


def _cases(word: str) -> set[bytes]:
    return {form.encode() for form in (word, word.lower(), word.upper(), word.capitalize())}
