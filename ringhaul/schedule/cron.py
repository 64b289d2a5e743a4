"""Cron expressions of five fields: minute, hour, day of month, month, day of week.

As in cron(5): `*`, numbers, ranges `a-b`, steps `*/n` and `a-b/n`, lists of these; months and days
of the week also by their first three letters; 0 and 7 are Sunday. If both day fields are restricted
(neither begins with `*`), a day matches if either does.
"""

import re
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(r"(\*|[0-9a-z]+)(?:-([0-9a-z]+))?(?:/([0-9]{1,4}))?", re.IGNORECASE)
#: Days of each month, in a leap year.
_DAYS_IN_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class _Field(NamedTuple):
    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()  #: names of the numbers from `lowest` on


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _WEEKDAYS),
)


@dataclass(frozen=True, kw_only=True)
class Cron:
    """A parsed cron expression."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  #: 0 is Sunday
    #: The hour field begins with `*`: an hour that the clocks repeat in autumn counts twice.
    hour_is_free: bool
    #: Both day fields are restricted: a day matches if either does.
    either_day: bool

    @classmethod
    def parse(cls, text: str) -> "Cron":
        """Parse an expression. Raises `ValueError` naming the bad field and what it may hold."""
        words = text.split()
        if len(words) != len(_FIELDS):
            raise ValueError(
                "expected five fields (minute, hour, day of month, month, day of week), "
                f"found {len(words)}"
            )
        minutes, hours, days, months, weekdays = (
            _parse_field(word, field) for word, field in zip(words, _FIELDS, strict=True)
        )
        cron = cls(
            text=" ".join(words),
            minutes=tuple(sorted(minutes)),
            hours=tuple(sorted(hours)),
            days=frozenset(days),
            months=frozenset(months),
            weekdays=frozenset(day % 7 for day in weekdays),
            hour_is_free=words[1].startswith("*"),
            either_day=not words[2].startswith("*") and not words[4].startswith("*"),
        )
        if not cron.either_day and all(
            min(days) > _DAYS_IN_MONTH[month - 1] for month in cron.months
        ):
            raise ValueError("is never due: no month of the fourth field has such a day")
        return cron

    def on(self, day: date) -> bool:
        """Whether the expression matches the day."""
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return in_month or in_week if self.either_day else in_month and in_week


def _parse_field(text: str, field: _Field) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f'{field.name} "{part[:40]}": {_expected(field)}')
        first, last, step_text = match.groups()
        if first == "*" and last is None:
            low, high = field.lowest, field.highest
        else:
            low = _number(first, part, field)
            high = low if last is None else _number(last, part, field)
            if last is None and step_text is not None:
                raise ValueError(f'{field.name} "{part}": a step needs * or a range before it')
        if low > high:
            raise ValueError(f'{field.name} "{part}": the range ends before it begins')
        step = int(step_text or 1)
        if step < 1:
            raise ValueError(f'{field.name} "{part}": expected a step of at least 1')
        found.update(range(low, high + 1, step))
    return found


def _number(text: str, part: str, field: _Field) -> int:
    lower = text.lower()
    if lower in field.names:
        return field.names.index(lower) + field.lowest
    if not re.fullmatch("[0-9]{1,4}", lower) or not field.lowest <= int(lower) <= field.highest:
        raise ValueError(f'{field.name} "{part[:40]}": {_expected(field)}')
    return int(lower)


def _expected(field: _Field) -> str:
    names = f" or {field.names[0]} to {field.names[-1]}" if field.names else ""
    return f"expected *, or {field.lowest} to {field.highest}{names}, ranges, steps, lists"
