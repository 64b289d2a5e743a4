"""Patterns of dates and times, of strftime or of Java: parsed to parts, which are read by a regular
expression and written by `ringhaul.cql.spell.patterned`.

A pattern with `%` is strftime's; any other is Java's (`DateTimeFormatter`).

Stricter than both, so that a text has one reading: a numeric field next to another has its full
width, years have four digits, and nothing is skipped silently. Names of months and days come from
one language, in any case.
"""

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from ringhaul.cql.month_names import NAMES
from ringhaul.errors import UsageError

ZONE = r"[Zz]|UTC|GMT|[+-]\d\d(?::?\d\d)?"
#: A zone by name: `CET`, `Europe/Paris`, `Etc/GMT+5`.
ZONE_NAME = r"[A-Za-z]{2,}[A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*"
#: What a pattern may be for.
KINDS = ("timestamp", "date", "time")


class Part(NamedTuple):
    """One part of a pattern: a literal text, a field, or the edge of an optional section."""

    field: str  #: "literal", "[", "]", or a field's group: see `compile_pattern`
    text: str = ""  #: a literal, or how a zone is written ("name", ":" or "")
    low: int = 0  #: least digits of a number
    high: int = 0  #: most digits; when written it has this many, a fraction exactly
    names: tuple[str, ...] = ()  #: names of months or days, in the order of the calendar
    padded: bool = True  #: a number is written with zeros in front


#: Directive -> (group, least digits, most digits).
_NUMBERS = {
    "Y": ("year", 4, 4),
    "y": ("year_of_century", 2, 2),
    "m": ("month", 1, 2),
    "d": ("day", 1, 2),
    "H": ("hour", 1, 2),
    "I": ("hour12", 1, 2),
    "M": ("minute", 1, 2),
    "S": ("second", 1, 2),
    "f": ("fraction", 1, 9),
}
_WORDS = ("b", "B", "a", "A", "p", "z", "Z")
_SHORTHANDS = {"T": "%H:%M:%S", "F": "%Y-%m-%d", "R": "%H:%M", "D": "%m/%d/%y"}
_TOKEN = re.compile(r"%(.?)|([^%]+)", re.DOTALL)
_GROUPS_OF_NUMBERS = {group for group, _, _ in _NUMBERS.values()} | {"year_since_2000"}

#: Java's letters of numbers -> group.
_JAVA_NUMBERS = {
    **dict.fromkeys("yu", "year"),
    **dict.fromkeys("ML", "month"),
    "d": "day", "H": "hour", "h": "hour12", "m": "minute", "s": "second", "S": "fraction",
}  # fmt: skip
_JAVA_TOKEN = re.compile(
    r"'((?:[^']|'')*)'|([A-Za-z])\2*|([\[\]])|([^A-Za-z'\[\]]+)|(.)", re.DOTALL
)
_JAVA_KNOWN = "y u M L d H h m s S a E c X x Z z V"


@functools.lru_cache(maxsize=128)
def pattern_parts(pattern: str, *, kind: str = "timestamp", language: str = "en") -> Sequence[Part]:
    """Parse a pattern. Raises `UsageError`, which begins with the pattern.

    `kind`: one of `KINDS`, which decides the fields that it needs and may have.
    """
    stripped = pattern.strip()  # as values are trimmed
    parse = _strftime_parts if "%" in stripped else _java_parts
    parts = _full_widths(parse(stripped, language))
    fields = [part.field for part in parts if part.field not in ("literal", "[", "]", "weekday")]
    for field in fields:
        if fields.count(field) > 1 and field != "zone":
            raise UsageError(f'"{pattern}" has the {field.replace("_", " ")} twice')
    _check_fields({part.field for part in parts}, pattern, kind)
    return tuple(parts)


@functools.lru_cache(maxsize=128)
def compile_pattern(
    pattern: str, *, any_digits: bool = False, kind: str = "timestamp", language: str = "en"
) -> re.Pattern[str]:
    """Return the expression that all of a text must match. Raises `UsageError`, the pattern first.

    Groups, as far as the pattern has them: year, year_of_century, year_since_2000, month,
    month_name, day, hour, hour12, half, minute, second, fraction, zone, region. With `any_digits`,
    literal digits in the pattern match any digit: whether a text matches depends only on its layout
    (`layouts.py`).
    """
    found: list[str] = []
    groups: set[str] = set()
    for part in pattern_parts(pattern, kind=kind, language=language):
        group = part.field
        if group == "literal":
            escaped = re.escape(part.text)
            found.append(re.sub("[0-9]", r"\\d", escaped) if any_digits else escaped)
        elif group in "[]":
            found.append("(?:" if group == "[" else ")?")
        elif group == "weekday":
            found.append(f"(?:{_any_name(part.names)})")
        elif group == "month_name":
            found.append(f"(?P<month_name>{_any_name(part.names)})")
        elif group == "half":
            found.append("(?P<half>am|pm)")
        elif group == "zone":
            if "zone" in groups:  # an offset, and the name of the zone that it belongs to
                group = "region"
            found.append(f"(?P<{group}>{ZONE}{f'|{ZONE_NAME}' if part.text == 'name' else ''})")
        else:
            found.append(rf"(?P<{group}>\d{{{part.low},{part.high}}})")
        groups.add(group)
    # No flag for ASCII: it would leave the case of É and Ü as it is. Digits are spelt out instead.
    expression = "".join(found).replace(r"\d", "[0-9]")
    return re.compile(expression, re.IGNORECASE)


def month_named(name: str, language: str) -> int:
    """Return the number of a month, 1 to 12, by its name or its short form, in any case."""
    plain = name.casefold().rstrip(".")
    known = NAMES[language]
    for months in (known.months, known.short_months):
        if plain in months:
            return months.index(plain) + 1
    raise ValueError(f"{name} is not the name of a month")


def _any_name(names: tuple[str, ...]) -> str:
    """Return an alternation of names, the longest first; a short form may end with a point."""
    return "|".join(rf"{re.escape(name)}\.?" for name in sorted(set(names), key=len, reverse=True))


def _strftime_parts(pattern: str, language: str) -> list[Part]:
    expanded = pattern
    for short, long in _SHORTHANDS.items():
        expanded = re.sub(rf"(?<!%)((?:%%)*)%{short}", rf"\g<1>{long}", expanded)
    names = NAMES[language]
    words = {
        "b": Part("month_name", names=names.short_months),
        "B": Part("month_name", names=names.months),
        "a": Part("weekday", names=names.short_days),
        "A": Part("weekday", names=names.days),
        "p": Part("half"),
        "z": Part("zone"),
        "Z": Part("zone", "name"),
    }
    parts: list[Part] = []
    for match in _TOKEN.finditer(expanded):
        directive, literal = match[1], match[2]
        if literal is not None:
            parts.append(Part("literal", literal))
        elif directive == "%":
            parts.append(Part("literal", "%"))
        elif directive in _NUMBERS:
            group, low, high = _NUMBERS[directive]
            parts.append(Part(group, "", low, high))
        elif directive in words:
            parts.append(words[directive])
        else:
            known = " ".join(f"%{letter}" for letter in (*_NUMBERS, *_WORDS, *_SHORTHANDS, "%"))
            raise UsageError(f'"{pattern}": %{directive} is not known, use {known}')
    return parts


def _java_parts(pattern: str, language: str) -> list[Part]:
    parts: list[Part] = []
    depth = 0
    for match in _JAVA_TOKEN.finditer(pattern):
        quoted, letter, bracket, literal, stray = match.groups()
        if quoted is not None:
            parts.append(Part("literal", quoted.replace("''", "'") or "'"))
        elif letter is not None:
            parts.append(_java_field(pattern, match[0], language))
        elif bracket is not None:
            depth += 1 if bracket == "[" else -1
            if depth < 0:
                raise UsageError(f'"{pattern}": ] without [')
            parts.append(Part(bracket))
        elif literal is not None:
            parts.append(Part("literal", literal))
        else:
            raise UsageError(f'"{pattern}": {stray} without another one')
    if depth:
        raise UsageError(f'"{pattern}": [ without ]')
    return parts


def _java_field(pattern: str, letters: str, language: str) -> Part:
    letter, count = letters[0], len(letters)
    names = NAMES[language]
    if letter in "ML" and count >= 3:
        return Part("month_name", names=names.short_months if count == 3 else names.months)
    if letter in "Ec":
        return Part("weekday", names=names.days if count == 4 else names.short_days)
    if letter == "a":
        return Part("half")
    if letter in "XxZ":
        return Part("zone", ":" if count in (3, 5) else "")
    if letter in "zV":
        return Part("zone", "name")
    group = _JAVA_NUMBERS.get(letter)
    if group is None:
        raise UsageError(
            f'"{pattern}": {letter} is not known, use {_JAVA_KNOWN} and text in single quotes, or '
            "a pattern of strftime such as %Y-%m-%d"
        )
    if group == "year":
        return Part("year_since_2000", "", 2, 2) if count == 2 else Part("year", "", 4, 4)
    if group == "fraction":
        return Part("fraction", "", min(count, 9), min(count, 9))
    return Part(group, "", min(count, 2), 2, padded=count > 1)


def _full_widths(parts: Sequence[Part]) -> list[Part]:
    """Give a number its full width if another digit stands beside it: a text has one reading."""
    found: list[Part] = []
    for index, part in enumerate(parts):
        if part.field in _GROUPS_OF_NUMBERS and part.low < part.high:
            before, after = _is_digit(parts, index - 1, -1), _is_digit(parts, index + 1, 0)
            if part.field == "fraction":
                if after:
                    part = part._replace(low=6, high=6)  # microseconds, as strftime writes them
            elif before or after:
                part = part._replace(low=part.high, padded=True)
        found.append(part)
    return found


def _is_digit(parts: Sequence[Part], index: int, at: int) -> bool:
    step = 1 if at == 0 else -1
    while 0 <= index < len(parts) and parts[index].field in ("[", "]"):
        index += step
    if not 0 <= index < len(parts):
        return False
    part = parts[index]
    if part.field == "literal":
        return part.text[at].isdigit()
    return part.field in _GROUPS_OF_NUMBERS


_YEARS = {"year", "year_of_century", "year_since_2000"}
_CLOCK = {"hour", "hour12", "half", "minute", "second", "fraction"}


def _check_fields(fields: set[str], pattern: str, kind: str) -> None:
    dates = fields & (_YEARS | {"month", "month_name", "day", "weekday"})
    if kind == "time":
        if dates or "zone" in fields or not fields & {"hour", "hour12"}:
            raise UsageError(
                f'"{pattern}" must have an hour (%H, or HH), and no date or zone: it is for times '
                "of day"
            )
    elif len(fields & _YEARS) != 1 or not _one_month(fields) or "day" not in fields:
        raise UsageError(
            f'"{pattern}" must have one year (%Y or %y), one month (%m, %b or %B) and a day (%d); '
            "in Java's letters: yyyy, MM or MMM, dd"
        )
    if kind == "date" and fields & (_CLOCK | {"zone"}):
        raise UsageError(f'"{pattern}" must have no time of day and no zone: it is for dates')
    if "hour" in fields and "hour12" in fields:
        raise UsageError(f'"{pattern}" has both hours of 24 and of 12 (%H and %I, or HH and hh)')
    if ("hour12" in fields) != ("half" in fields):
        raise UsageError(f'"{pattern}": %I and %p need each other (hh and a)')


def _one_month(fields: set[str]) -> bool:
    return ("month" in fields) != ("month_name" in fields)
