"""Wall-clock times of a time zone as moments, and the daily window in which runs may start.

Twice a year a zone's clocks jump. A wall-clock time that is skipped stands for the moment of the
jump; a time that comes twice stands for its first moment, unless both are requested.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from ringhaul.schedule.times import moment, to_ms

DAY = timedelta(days=1)
_NONE = timedelta()
_WINDOW = re.compile(r"(\d\d):(\d\d) ?- ?(\d\d):(\d\d)")


def wall_moments(day: date, at: time, zone: ZoneInfo, *, both: bool = False) -> list[int]:
    """Return the moments (ms, one or two) at which the clocks show `at` on `day`, in order.

    `both`: a time that comes twice counts twice.
    """
    first, second = (
        datetime.combine(day, at, zone).replace(fold=fold).astimezone(UTC) for fold in (0, 1)
    )
    if first == second:
        return [to_ms(first)]
    if first > second:  # skipped: `second` is before the jump, `first` after it
        return [_jump(to_ms(second) // 1000, to_ms(first) // 1000, zone) * 1000]
    return [to_ms(first), to_ms(second)] if both else [to_ms(first)]


def _jump(before_s: int, after_s: int, zone: ZoneInfo) -> int:
    """Return the first second after `before_s` with the offset that the zone has at `after_s`."""
    old = moment(before_s * 1000).astimezone(zone).utcoffset()
    while after_s - before_s > 1:
        middle = (before_s + after_s) // 2
        if moment(middle * 1000).astimezone(zone).utcoffset() == old:
            before_s = middle
        else:
            after_s = middle
    return after_s


def offset_changes(after_ms: int, zone: ZoneInfo) -> Iterator[tuple[int, int]]:
    """Yield the moments within two years at which the clocks jump, and by how much; both in ms."""
    before = moment(after_ms).astimezone(UTC)
    for _ in range(2 * 366):
        after = before + DAY
        old, new = (when.astimezone(zone).utcoffset() or _NONE for when in (before, after))
        if old != new:
            at_s = _jump(to_ms(before) // 1000, to_ms(after) // 1000, zone)
            yield at_s * 1000, (new - old) // timedelta(milliseconds=1)
        before = after


def local_day(ms: int, zone: ZoneInfo) -> date:
    """Return the date in the zone at a moment."""
    return moment(ms).astimezone(zone).date()


@dataclass(frozen=True, kw_only=True)
class Window:
    """The time of day from `start` to before `end`; across midnight if `end` is not later."""

    start: time
    end: time

    @classmethod
    def parse(cls, text: str) -> "Window":
        """Parse `"01:00-05:00"`. Raises `ValueError` saying what was expected."""
        match = _WINDOW.fullmatch(text.strip())
        numbers = [int(part) for part in match.groups()] if match else [99, 0, 0, 0]
        if max(numbers[0::2]) > 23 or max(numbers[1::2]) > 59 or numbers[:2] == numbers[2:]:
            raise ValueError('expected two times of the day such as "01:00-05:00"')
        return cls(start=time(numbers[0], numbers[1]), end=time(numbers[2], numbers[3]))

    def holds(self, at: time) -> bool:
        """Whether a time of day is within the window."""
        if self.start < self.end:
            return self.start <= at < self.end
        return at >= self.start or at < self.end

    def on(self, day: date, zone: ZoneInfo) -> tuple[int, int]:
        """Return the moments at which the window of a day opens and closes."""
        last = day if self.start < self.end else day + DAY
        return wall_moments(day, self.start, zone)[0], wall_moments(last, self.end, zone)[0]

    @property
    def length_s(self) -> int:
        """Seconds from start to end, on a day without a clock change."""
        minutes = (self.end.hour - self.start.hour) * 60 + self.end.minute - self.start.minute
        return minutes % 1440 * 60

    @property
    def text(self) -> str:
        """The window as `parse` reads it."""
        return f"{self.start:%H:%M}-{self.end:%H:%M}"
