"""What texts look like: numbers, times and UUIDs in their usual spelling; and which text does not.

`inference` uses this to choose the type of a new column. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import pyarrow as pa

from ringhaul.cql.column import quote
from ringhaul.cql.text import TextFormat, encode_text

WHOLE = re.compile("0|-?[1-9][0-9]*")
#: Digits before the point, after it, and the exponent.
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.([0-9]+))?([eE][+-]?[0-9]{1,4})?")
UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = "[0-9]{2}:[0-9]{2}"
DATE = re.compile(_DAY)
TIME = re.compile(rf"{_CLOCK}:[0-9]{{2}}(?:\.[0-9]{{1,9}})?")
MOMENT = re.compile(rf"{_DAY}[T ]{_CLOCK}.*", re.DOTALL)
#: Texts that a number would not give back unchanged.
_ALMOST_NUMBERS = (
    ("a leading zero", re.compile(r"[+-]?0[0-9]+(?:\.[0-9]+)?")),
    ("a plus sign", re.compile(r"\+[0-9]+(?:\.[0-9]+)?")),
)
#: Number of texts that decide what a column looks like.
_LOOK_AT = 200


def plain_number(text: str, fmt: TextFormat) -> str:
    """Return a number without separators between thousands, with a decimal point."""
    plain = text.replace(fmt.thousands_sep, "") if fmt.thousands_sep else text
    return plain.replace(fmt.decimal_sep, ".")


def is_number(text: str, fmt: TextFormat) -> bool:
    """Return whether a text is a number with the format's separators, each in its place."""
    return _number_form(fmt.decimal_sep, fmt.thousands_sep).fullmatch(text) is not None


@lru_cache
def _number_form(decimal_sep: str, thousands_sep: str) -> re.Pattern[str]:
    point, thousands = re.escape(decimal_sep), re.escape(thousands_sep)
    grouped = rf"[1-9][0-9]{{0,2}}(?:{thousands}[0-9]{{3}})+|" if thousands else ""
    return re.compile(
        rf"[+-]?(?:(?:{grouped}[0-9]+)(?:{point}[0-9]+)?(?:[eE][+-]?[0-9]{{1,4}})?"
        r"|nan|inf|infinity)",
        re.IGNORECASE,
    )


def why_text(texts: Sequence[str], fmt: TextFormat) -> str:
    """Return why a column is text: what most of its distinct texts look like, and the first text
    that does not."""
    for what, form in _ALMOST_NUMBERS:
        if (found := next((text for text in texts if form.fullmatch(text)), None)) is not None:
            return f"{quote(found)} has {what}"
    first = texts[:_LOOK_AT]
    name, others = "", list[str]()
    for kind, others_of in _kinds(fmt):
        left = others_of(first)
        if (
            2 * len(left) <= len(first)
            and len(left) < len(first)
            and (not name or len(left) < len(others))
        ):
            name, others, chosen = kind, left, others_of
    if not name:
        return f"such as {quote(texts[0])}"
    others = chosen(texts)
    if not others:
        return f"such as {quote(texts[0])}"
    if len(others) == 1:
        return f"{quote(others[0])} is not {name}"
    more = "another" if len(others) == 2 else f"{len(others) - 1:,} others"
    return f"{quote(others[0])} and {more} are not {name.removeprefix('a ')}s"


#: Returns the texts that are not of a kind.
OthersOf = Callable[[Sequence[str]], list[str]]


def _kinds(fmt: TextFormat) -> list[tuple[str, OthersOf]]:
    """Return what texts may be, and how to find texts that are something else."""

    def of_form(form: re.Pattern[str]) -> OthersOf:
        return lambda texts: [text for text in texts if not form.fullmatch(text)]

    def of_type(kind: str) -> OthersOf:
        def others(texts: Sequence[str]) -> list[str]:
            column = pa.array(texts, pa.string()).cast(pa.binary())
            bad = encode_text(kind, column, fmt, null_length=-1)[1]
            return [texts[one.row] for one in bad]

        return others

    own = [
        (f"a {kind}", of_type(kind)) for kind in ("date", "time", "timestamp") if fmt.patterns(kind)
    ]
    numbers: OthersOf = of_form(NUMBER)
    if not fmt.plain_numbers:
        numbers = of_form(_number_form(fmt.decimal_sep, fmt.thousands_sep))
    return [
        *own,
        ("a number", numbers),
        ("a time", of_form(MOMENT)),
        ("a date", of_form(DATE)),
        ("a time of day", of_form(TIME)),
        ("a UUID", of_form(UUID)),
    ]
