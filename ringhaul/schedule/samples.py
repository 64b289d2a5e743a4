"""Some due times of a timing, among which what repeats is found out: an hour, a day of the month,
the hour that a zone's clocks show twice."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from itertools import islice

from ringhaul.schedule.times import moment
from ringhaul.schedule.timing import Timing
from ringhaul.schedule.windows import offset_changes, wall_moments

#: In a row. Of three two are on one day, if that ever happens with two due times a day.
_IN_A_ROW = 3
#: Of a zone's offset: one forward and one back, where there are any.
_CHANGES = 2


def sample_dues(timing: Timing, now_ms: int) -> list[int]:
    """Due times in order: some in a row; one a week, a month and a year after the first of them;
    and those around the zone's next changes of its clocks. None if nothing is ever due."""
    dues = set(_row(timing, 0))
    if dues:
        first = moment(min(dues)).astimezone(timing.zone)
        for day in _days_later(first.date()):
            same_ms = wall_moments(day, first.time(), timing.zone)[0]
            dues.update(islice(_row(timing, same_ms - 1), 1))
    for at_ms, by_ms in islice(offset_changes(now_ms, timing.zone), _CHANGES):
        # What the clocks show in a stretch so long before a change they show again after it
        dues.update(_row(timing, at_ms - abs(by_ms) - 1))
        dues.update(_row(timing, at_ms - 1))
    return sorted(dues)


def _row(timing: Timing, after_ms: int) -> Iterator[int]:
    for _ in range(_IN_A_ROW):
        due_ms = timing.due_after(after_ms)
        if due_ms is None:
            return
        yield due_ms
        after_ms = due_ms


def _days_later(day: date) -> list[date]:
    """A week, a month and a year later; of months those that have such a day."""
    months = []
    for ahead in range(day.month, day.month + 12):
        with suppress(ValueError):
            months.append(day.replace(year=day.year + ahead // 12, month=ahead % 12 + 1))
    return [day + timedelta(days=7), months[0], months[-1]]
