"""Whole numbers that are spelt as decimals: `7.0`, `1e3`, and fractions if the format rounds them.

Exact on digits: no number becomes a float on its way.
"""

from __future__ import annotations

import re

from ringhaul.cql.boolean_numbers import number_hint
from ringhaul.cql.column import quote
from ringhaul.cql.hints import hint, reading, show_moment
from ringhaul.cql.text_format import TextFormat

# Possessive, so that a mismatch costs no more than a match.
_WHOLE = re.compile(r"[+-]?[0-9]++")
_NUMBER = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>[0-9]++)(?:\.(?P<fraction>[0-9]*+))?|\.(?P<bare>[0-9]++))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]++))?"
)
#: Three digits in each group: with points between thousands 1.234 is a whole number.
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+")
#: Seconds since 1970, from 2001 to 2100, with milliseconds, microseconds or nanoseconds.
_SECONDS = re.compile(r"(?P<seconds>[1-3][0-9]{9})\.(?P<ms>[0-9]{3})(?:[0-9]{3}){0,2}")
#: More digits are not shown; no type with bounds has as many.
_SHOWN_DIGITS_MAX = 40
#: Zeros that an exponent may add: eleven characters could otherwise ask for a gigabyte of digits.
ZEROS_MAX = 10_000


def whole_text(text: str, fmt: TextFormat, bounds: tuple[int, int] | None = None) -> str:
    """Return the digits of a whole number, with its sign, as far as the format accepts the text.

    Raises `ValueError` with the reason, which names the options that would accept the text.
    `bounds`: the least and the largest useful value, which decide what the reason names.
    """
    if _WHOLE.fullmatch(text):
        return text
    number = _NUMBER.fullmatch(text)
    if number is None:
        raise ValueError(f"{quote(text)} is not a whole number{number_hint(text, fmt)}")
    whole, fraction = _around_the_point(number, text)
    exact = not fraction.strip("0")
    if exact and (fmt.accepts("fractions") or fmt.rounding != "none"):
        return number["sign"] + whole
    if not exact and fmt.rounding != "none":
        return number["sign"] + _rounded(whole, fraction, fmt.rounding, number["sign"] == "-")
    raise ValueError(
        f"{quote(text)} is not a whole number{_fraction_hint(text, fmt, exact, bounds)}"
    )


def _fraction_hint(text: str, fmt: TextFormat, exact: bool, bounds: tuple[int, int] | None) -> str:
    """Return which options read a number with a fraction, and what comes out.

    `exact`: the fraction is zero.
    """
    if not exact and (moment := _SECONDS.fullmatch(text)):
        shown = show_moment(int(moment["seconds"] + moment["ms"]))
        return f"; as seconds since 1970 it is {shown}, which a column of timestamps can hold"

    def read(changed: TextFormat) -> str:
        plain = text
        if changed.thousands_sep:
            plain = text.replace(changed.thousands_sep, "").replace(changed.decimal_sep, ".")
        number = whole_text(plain, changed)
        if len(number) > _SHOWN_DIGITS_MAX:
            return "" if bounds else number
        value = int(number)
        return str(value) if bounds is None or bounds[0] <= value <= bounds[1] else ""

    readings = []
    if fmt.plain_numbers and _THOUSANDS.fullmatch(text):
        readings.append(reading({"decimal-sep": ",", "thousands-sep": "."}, fmt, read))
    if exact:
        readings.append(reading({"accept": "fractions"}, fmt, read))
    else:
        note = "its fraction is lost"
        readings.append(reading({"rounding": "half-even"}, fmt, read, note=note))
    return hint(readings)


def _around_the_point(number: re.Match[str], text: str) -> tuple[str, str]:
    """Return the digits before and after the decimal point, once the exponent has moved it."""
    whole, fraction = number["whole"] or "", number["fraction"] or number["bare"] or ""
    exponent = number["exponent"] or "0"
    digits = exponent.lstrip("+-").lstrip("0") or "0"
    if not (whole + fraction).strip("0"):
        return "0", ""
    places = int(digits) if len(digits) < 10 else 10**10
    if places > ZEROS_MAX + len(whole) + len(fraction):
        raise ValueError(f"{quote(text)} has an exponent beyond {ZEROS_MAX:,} digits")
    if exponent.startswith("-"):
        padded = whole.rjust(places, "0")
        cut = len(padded) - places
        return padded[:cut] or "0", padded[cut:] + fraction
    padded = fraction.ljust(places, "0")
    return (whole + padded[:places]) or "0", padded[places:]


def _rounded(whole: str, fraction: str, rounding: str, negative: bool) -> str:
    """Round a magnitude; `fraction` is not zero."""
    half = (fraction[0] > "5") - (fraction[0] < "5") or int(bool(fraction[1:].strip("0")))
    away = {
        "up": True,
        "down": False,
        "floor": negative,
        "ceiling": not negative,
        "half-up": half >= 0,
        "half-down": half > 0,
        "half-even": half > 0 or (half == 0 and whole[-1] in "13579"),
    }[rounding]
    if not away:
        return whole
    # The last digit that is not a 9 grows by one; the nines after it become zeros.
    kept = whole.rstrip("9")
    nines = len(whole) - len(kept)
    head = kept[:-1] + str(int(kept[-1]) + 1) if kept else "1"
    return head + "0" * nines
