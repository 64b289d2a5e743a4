"""Compile strftime patterns to regular expressions with named groups, for parsing.

Stricter than `datetime.strptime`, so that a text has one reading: a numeric field next to another
one has its full width, years have four digits, and nothing is skipped silently. Names of months and
days are English, in any case.
"""

import functools
import re

from ringhaul.errors import UsageError

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAMES = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
)
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_DAYS_SHORT = "mon|tue|wed|thu|fri|sat|sun"
ZONE = r"[Zz]|UTC|GMT|[+-]\d\d(?::?\d\d)?"

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
#: Directive -> (group or None, expression).
_WORDS = {
    "b": ("month_name", "|".join(MONTHS)),
    "B": ("month_name", _MONTH_NAMES),
    "a": (None, _DAYS_SHORT),
    "A": (None, _DAYS),
    "p": ("half", "am|pm"),
    "z": ("zone", ZONE),
    "Z": ("zone", ZONE),
}
_SHORTHANDS = {"T": "%H:%M:%S", "F": "%Y-%m-%d", "R": "%H:%M", "D": "%m/%d/%y"}
_TOKEN = re.compile(r"%(.?)|([^%]+)", re.DOTALL)


@functools.lru_cache(maxsize=128)
def compile_pattern(pattern: str, *, any_digits: bool = False) -> re.Pattern[str]:
    """Return the expression that a whole text must match. Raises `UsageError`, the pattern first.

    Groups: year, year_of_century, month, month_name, day, hour, hour12, half, minute, second,
    fraction, zone; only those that the pattern has. With `any_digits`, literal digits in the
    pattern match any digit: whether a text matches depends only on its layout (`layouts.py`).
    """
    expanded = pattern.strip()  # values are trimmed, too
    for short, long in _SHORTHANDS.items():
        expanded = re.sub(rf"(?<!%)((?:%%)*)%{short}", rf"\g<1>{long}", expanded)
    tokens = [(match[1], match[2]) for match in _TOKEN.finditer(expanded)]
    parts: list[str] = []
    groups: set[str] = set()
    for index, (directive, literal) in enumerate(tokens):
        if literal is not None:
            escaped = re.escape(literal)
            parts.append(re.sub("[0-9]", r"\\d", escaped) if any_digits else escaped)
        elif directive == "%":
            parts.append("%")
        elif directive in _NUMBERS:
            group, low, high = _NUMBERS[directive]
            touches_next = _is_digit(tokens, index + 1, last=False)
            if directive == "f" and touches_next:
                low = high = 6  # microseconds, as strftime writes them
            elif directive != "f" and (touches_next or _is_digit(tokens, index - 1, last=True)):
                low = high
            _claim(group, groups, pattern)
            parts.append(rf"(?P<{group}>\d{{{low},{high}}})")
        elif directive in _WORDS:
            name, expression = _WORDS[directive]
            if name is not None:
                _claim(name, groups, pattern)
            parts.append(f"(?P<{name}>{expression})" if name else f"(?:{expression})")
        else:
            known = " ".join(f"%{letter}" for letter in (*_NUMBERS, *_WORDS, *_SHORTHANDS, "%"))
            raise UsageError(f'"{pattern}": %{directive} is not known, use {known}')
    _check_date(groups, pattern)
    return re.compile("".join(parts), re.ASCII | re.IGNORECASE)


def _is_digit(tokens: list[tuple[str | None, str | None]], index: int, *, last: bool) -> bool:
    if not 0 <= index < len(tokens):
        return False
    directive, literal = tokens[index]
    if literal is not None:
        return literal[-1 if last else 0].isdigit()
    return directive in _NUMBERS


def _claim(group: str, groups: set[str], pattern: str) -> None:
    if group in groups:
        raise UsageError(f'"{pattern}" has the {group} twice')
    groups.add(group)


def _check_date(groups: set[str], pattern: str) -> None:
    year = len(groups & {"year", "year_of_century"})
    month = len(groups & {"month", "month_name"})
    if year != 1 or month != 1 or "day" not in groups:
        raise UsageError(
            f'"{pattern}" must have one year (%Y or %y), one month (%m, %b or %B) and a day (%d)'
        )
    if "hour" in groups and "hour12" in groups:
        raise UsageError(f'"{pattern}" has both %H and %I')
    if ("hour12" in groups) != ("half" in groups):
        raise UsageError(f'"{pattern}": %I and %p need each other')
