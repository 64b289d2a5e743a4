"""Whether a text that due times are put into, such as the name of a folder, comes back: at the next
one, after a week, a month, a year, or in the hour that a zone's clocks show twice."""

from calendar import isleap
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import chain, islice, pairwise

from ringhaul.schedule.times import moment, to_ms
from ringhaul.schedule.timing import Timing
from ringhaul.schedule.windows import offset_changes, wall_moments

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
#: Of 61 in a row two are in one hour at intervals of up to 59 minutes, and on one day at those of
#: up to 23.6 hours, wherever the row begins.
_IN_A_ROW = 61
#: Of rare ones: February and March, of a year with 28 days and of one with 29.
_ROW_MS = 2 * 366 * _DAY_MS
#: Two on one day, if that ever happens around a change.
_AT_A_CHANGE = 3
#: Of a zone's offset: one forward and one back, where there are any.
_CHANGES = 2
#: Of due times that are looked for again later: of three in a row one is no 29 February, and with
#: `mon-fri` one has its day of the month on a working day of the next month, too.
_FIRSTS = 3


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """Two due times that give the same text."""

    first_ms: int
    again_ms: int
    #: No other due time is between them, or the zone's clocks show the same at both.
    at_once: bool


def find_repeat(timing: Timing, now_ms: int, text: Callable[[int], str]) -> Repeat | None:
    """Two due times from `now_ms` on that give the same `text`: next to each other if there are
    such, else the closest. None: those that were looked at all differ.

    Whether there are such next to each other is the same at any `now_ms`: what only a leap year or
    a change of the clocks brings about is looked for where the next one is.
    """
    text = cache(text)
    row = list(_row(timing, now_ms))
    leap = _row(timing, _leap_year(now_ms))
    neighbours = chain(pairwise(row), _around_changes(timing, now_ms), pairwise(leap))
    for first_ms, again_ms in neighbours:
        if text(first_ms) == text(again_ms):
            return Repeat(first_ms=first_ms, again_ms=again_ms, at_once=True)
    found: list[tuple[int, int]] = []
    last: dict[str, int] = {}
    for due_ms in row:
        before_ms = last.get(text(due_ms))
        if before_ms is not None:
            found.append((before_ms, due_ms))
        last[text(due_ms)] = due_ms
    for first_ms in row[:_FIRSTS]:
        later = _later(timing, first_ms)
        found += [(first_ms, ms) for ms in later if text(ms) == text(first_ms)]
    if not found:
        return None
    first_ms, again_ms = min(found, key=lambda pair: (pair[1] - pair[0], pair))
    return Repeat(first_ms=first_ms, again_ms=again_ms, at_once=False)


def _row(timing: Timing, after_ms: int) -> Iterator[int]:
    """Due times in a row. Two at least, if so many ever come."""
    first_ms = None
    for number in range(_IN_A_ROW):
        due_ms = timing.due_after(after_ms)
        if due_ms is None or (number > 1 and due_ms - (first_ms or 0) > _ROW_MS):
            return
        first_ms = first_ms or due_ms
        yield due_ms
        after_ms = due_ms


def _leap_year(now_ms: int) -> int:
    """The beginning of the next leap year."""
    year = moment(now_ms).year + 1
    while not isleap(year):
        year += 1
    return to_ms(datetime(year, 1, 1, tzinfo=UTC))


def _around_changes(timing: Timing, now_ms: int) -> Iterator[tuple[int, int]]:
    """Due times next to each other, and those at which the clocks show the same, around the zone's
    next changes of its clocks."""
    for at_ms, by_ms in islice(offset_changes(now_ms, timing.zone), _CHANGES):
        last_ms = timing.due_last(0, at_ms - 1)
        if last_ms is None:
            continue  # so rarely due that the row has what is around the change, if it ever is
        after = list(islice(_row(timing, at_ms - 1), _AT_A_CHANGE))
        yield from pairwise([last_ms, *after])
        # What the clocks show in a stretch so long before a change back they show again after it
        for due_ms in islice(_row(timing, at_ms - abs(by_ms) - 1), _AT_A_CHANGE):
            if due_ms < at_ms and due_ms - by_ms in after:
                yield due_ms, due_ms - by_ms


def _later(timing: Timing, first_ms: int) -> Iterator[int]:
    """The due times that come first an hour, a day, a week, a month and so on after another."""
    first = moment(first_ms).astimezone(timing.zone)
    same = [wall_moments(day, first.time(), timing.zone)[0] for day in _days_later(first.date())]
    due_ms: int | None = first_ms
    for same_ms in (first_ms + _HOUR_MS, *same):
        if due_ms is not None and due_ms < same_ms:
            due_ms = timing.due_after(same_ms - 1)
            if due_ms is not None:
                yield due_ms


def _days_later(day: date) -> list[date]:
    """A day, a week, a month and a year later; of months those that have such a day."""
    months = []
    for ahead in range(day.month, day.month + 12):
        with suppress(ValueError):
            months.append(day.replace(year=day.year + ahead // 12, month=ahead % 12 + 1))
    return [day + timedelta(days=1), day + timedelta(days=7), months[0], months[-1]]
