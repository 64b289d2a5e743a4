"""When a schedule is due: by cron in its time zone, or at equal intervals.

Times outside the window are not due. Intervals are counted from 1970 in UTC (`every = "15m"` is due
at :00, :15, :30 and :45), so that every beat has the same due times, whenever it was started.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, time
from functools import lru_cache
from zoneinfo import ZoneInfo

from ringhaul.schedule.cron import Cron
from ringhaul.schedule.windows import DAY, Window, local_day, wall_moments

#: 29 February comes within eight years; on a given day of the week, within 40.
_DAYS_AHEAD_MAX = 41 * 366
#: No interval is longer than its window, so one of the next few windows has a due time.
_WINDOWS_AHEAD_MS = 4 * 86_400_000
_FOREVER_MS = 2**62
#: How far back to search for due times that passed while no beat ran.
LOOK_BACK_MS = 31 * 86_400_000


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Either `cron` or `every_s` is set; `every_s` is at most a day and at most the window."""

    zone: ZoneInfo
    cron: Cron | None = None
    every_s: int = 0
    window: Window | None = None

    def due_after(self, after_ms: int) -> int | None:
        """Return the first due time after `after_ms`; None: not within decades."""
        if self.cron is not None:
            day = local_day(after_ms, self.zone) - DAY  # a jump may move a time to the next day
            for ahead in range(_DAYS_AHEAD_MAX):
                for due in _cron_day(self, day + ahead * DAY):
                    if due > after_ms:
                        return due
            return None
        step = self.every_s * 1000
        for opens, closes in self._open(after_ms, after_ms + _WINDOWS_AHEAD_MS):
            due = max(after_ms // step + 1, -(-opens // step)) * step
            if due < closes:
                return due
        return None

    def due_last(self, after_ms: int, until_ms: int) -> int | None:
        """Return the last due time after `after_ms` and not after `until_ms`, if any.

        Due times more than 31 days before `until_ms` are ignored.
        """
        after_ms = max(after_ms, until_ms - LOOK_BACK_MS)
        if self.cron is not None:
            day = local_day(until_ms, self.zone) + DAY
            first = local_day(after_ms, self.zone) - DAY
            while day >= first:
                for due in reversed(_cron_day(self, day)):
                    if after_ms < due <= until_ms:
                        return due
                day -= DAY
            return None
        step = self.every_s * 1000
        for opens, closes in reversed(list(self._open(after_ms, until_ms))):
            due = min(until_ms, closes - 1) // step * step
            if due > after_ms and due >= opens:
                return due
        return None

    def in_window(self, ms: int) -> bool:
        """Whether a run may start at this moment."""
        return _within(self._open(ms, ms), ms)

    def opens_after(self, ms: int) -> int | None:
        """Return when the window opens next; None without a window."""
        later = (opens for opens, _ in self._open(ms, ms + _WINDOWS_AHEAD_MS) if opens > ms)
        return next(later, None) if self.window is not None else None

    @property
    def text(self) -> str:
        """Canonical text of this timing; equal texts mean equal timings."""
        when = self.cron.text if self.cron is not None else f"every {self.every_s}s"
        where = f" {self.zone.key}" if self.cron is not None or self.window is not None else ""
        return when + where + (f" {self.window.text}" if self.window is not None else "")

    def _open(self, from_ms: int, to_ms: int) -> Iterator[tuple[int, int]]:
        """Yield the periods of the open window that overlap the given period, in order."""
        if self.window is None:
            yield 0, _FOREVER_MS
            return
        day = local_day(from_ms, self.zone) - 2 * DAY
        last = local_day(to_ms, self.zone) + DAY
        while day <= last:
            opens, closes = self.window.on(day, self.zone)
            if closes > from_ms and opens <= to_ms:
                yield opens, closes
            day += DAY


@lru_cache(maxsize=256)
def _cron_day(timing: Timing, day: date) -> tuple[int, ...]:
    """Return the due times of a day in the zone, in order. Cached, as every poll needs them.

    Both the time of day and its moment must be within the window: a time that the clocks skip may
    move to where the window closes, and a repeated time may come after that.
    """
    cron, window = timing.cron, timing.window
    assert cron is not None
    if not cron.on(day):
        return ()
    moments = set()
    for hour in cron.hours:
        for minute in cron.minutes:
            at = time(hour, minute)
            if window is None or window.holds(at):
                moments.update(wall_moments(day, at, timing.zone, both=cron.hour_is_free))
    if window is None or not moments:
        return tuple(sorted(moments))
    stretches = list(timing._open(min(moments), max(moments)))
    return tuple(sorted(ms for ms in moments if _within(stretches, ms)))


def _within(stretches: Iterable[tuple[int, int]], ms: int) -> bool:
    return any(opens <= ms < closes for opens, closes in stretches)
