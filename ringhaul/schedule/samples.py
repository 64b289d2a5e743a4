"""Check whether a text made from due times, such as a folder's name, repeats: at the next due time,
after a week, a month or a year, or in the hour that a zone's clocks show twice."""

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
#: Due times in a row. Of 61, two fall in one hour at intervals of up to 59 minutes, and on one day
#: at intervals of up to 23.6 hours, wherever the row begins.
_IN_A_ROW = 61
#: Length of a row of rare due times: covers February and March of a leap and of a common year.
_ROW_MS = 2 * 366 * _DAY_MS
#: Due times after a change of the clocks: enough for two on one day, if that ever happens.
_AT_A_CHANGE = 3
#: Changes of a zone's offset to check: one forward and one back, if it has any.
_CHANGES = 2
#: Due times whose text is compared with later texts: three in a row include a day other than 29
#: February, and with `mon-fri` a day of the month that is a working day in the next month as well.
_FIRSTS = 3


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """Two due times that give the same text."""

    first_ms: int
    again_ms: int
    #: No other due time is between them, or the zone's clocks show the same time at both.
    at_once: bool


def find_repeat(timing: Timing, now_ms: int, text: Callable[[int], str]) -> Repeat | None:
    """Return two due times from `now_ms` on with the same `text`: neighbours if any are found, else
    the closest two. None if the texts of all checked due times differ.

    Whether neighbours are found does not depend on `now_ms`: the checks include the next leap year
    and the next changes of the clocks, for repeats that only these cause.
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
    """Yield consecutive due times: at least two, if the schedule has two."""
    first_ms = None
    for number in range(_IN_A_ROW):
        due_ms = timing.due_after(after_ms)
        if due_ms is None or (number > 1 and due_ms - (first_ms or 0) > _ROW_MS):
            return
        first_ms = first_ms or due_ms
        yield due_ms
        after_ms = due_ms


def _leap_year(now_ms: int) -> int:
    """Return the beginning of the next leap year, in ms."""
    year = moment(now_ms).year + 1
    while not isleap(year):
        year += 1
    return to_ms(datetime(year, 1, 1, tzinfo=UTC))


def _around_changes(timing: Timing, now_ms: int) -> Iterator[tuple[int, int]]:
    """Yield pairs of due times around the next changes of the zone's clocks: neighbours, and due
    times at which the clocks show the same time."""
    for at_ms, by_ms in islice(offset_changes(now_ms, timing.zone), _CHANGES):
        last_ms = timing.due_last(0, at_ms - 1)
        if last_ms is None:
            continue  # so rarely due that the row includes any due time around the change
        after = list(islice(_row(timing, at_ms - 1), _AT_A_CHANGE))
        yield from pairwise([last_ms, *after])
        # When the clocks go back, they show the last `by_ms` before the change again after it.
        for due_ms in islice(_row(timing, at_ms - abs(by_ms) - 1), _AT_A_CHANGE):
            if due_ms < at_ms and due_ms - by_ms in after:
                yield due_ms, due_ms - by_ms


def _later(timing: Timing, first_ms: int) -> Iterator[int]:
    """Yield the first due time that is at least an hour, a day, a week, a month and so on later."""
    first = moment(first_ms).astimezone(timing.zone)
    same = [wall_moments(day, first.time(), timing.zone)[0] for day in _days_later(first.date())]
    due_ms: int | None = first_ms
    for same_ms in (first_ms + _HOUR_MS, *same):
        if due_ms is not None and due_ms < same_ms:
            due_ms = timing.due_after(same_ms - 1)
            if due_ms is not None:
                yield due_ms


def _days_later(day: date) -> list[date]:
    """Return the dates a day, a week, a month and a year later, skipping months without the day."""
    months = []
    for ahead in range(day.month, day.month + 12):
        with suppress(ValueError):
            months.append(day.replace(year=day.year + ahead // 12, month=ahead % 12 + 1))
    return [day + timedelta(days=1), day + timedelta(days=7), months[0], months[-1]]
