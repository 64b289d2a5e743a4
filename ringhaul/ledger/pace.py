"""How fast a job may run, always or at some times of the day. Pure.

A pace is stored with its job in the ledger, so that it can be changed while the job runs. Workers
get it with every renewal of a lease, and apply it by the server's clock.

The hours of a day follow a time zone, with its daylight saving: an hour that comes twice is in the
window both times; an hour that is skipped contains no time.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from ringhaul.errors import UsageError
from ringhaul.option_names import job_option

MINUTES_PER_DAY = 24 * 60
#: What an attempt draws at once, in seconds of the job's rate.
DRAW_S = 0.1
#: Once the attempts of a job wait for each other at its limit for this many draws, another attempt
#: would only wait with them. 0: the limit is not reached.
TURNS_ENOUGH = 0.5
_WINDOW = re.compile(r"(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})")


class Limits(NamedTuple):
    """The limits at one moment, for the whole job across all its workers. 0: no limit."""

    rows_per_s: int = 0
    bytes_per_s: int = 0
    in_flight: int = 0  #: Unanswered requests.

    def shared(self, running: int) -> Limits:
        """Return what one of `running` units may have in flight: its share, at least 1."""
        if not self.in_flight:
            return self
        return self._replace(in_flight=max(1, self.in_flight // max(1, running)))


NO_LIMITS = Limits()


class DayWindow(NamedTuple):
    """Some hours of every day, from `begin` until before `end`, in minutes after midnight.

    An end that is not after the beginning is on the next day.
    """

    begin: int
    end: int

    @classmethod
    def parse(cls, text: str) -> DayWindow:
        """Parse `HH:MM-HH:MM`; the end may be 24:00. Raises `UsageError`."""
        found = _WINDOW.fullmatch(text.strip())
        if found:
            begin, end = (int(found[i]) * 60 + int(found[i + 1]) for i in (1, 3))
            minutes = (int(found[2]), int(found[4]))
            if max(minutes) < 60 and begin < MINUTES_PER_DAY >= end and begin != end:
                return cls(begin, end)
        raise UsageError(
            f'hours "{text}" are not understood: give HH:MM-HH:MM, such as 08:00-18:00, or '
            "22:00-06:00 for a night"
        )

    def holds(self, minute: int) -> bool:
        """Return whether a minute of the day is within the window."""
        if self.begin < self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end

    def __str__(self) -> str:
        hours = (f"{minute // 60:02}:{minute % 60:02}" for minute in self)
        return "-".join(hours)


@dataclass(frozen=True, kw_only=True)
class Pace:
    """The limits of a job, and when they apply."""

    limits: Limits = NO_LIMITS
    between: tuple[DayWindow, ...] = ()  #: Outside these there is no limit; empty: always.
    timezone: str = "UTC"

    @classmethod
    def of(cls, limits: Limits, between: tuple[str, ...] = (), timezone: str | None = None) -> Pace:
        """Return limits as a user gives them. Raises `UsageError` for an invalid time or zone."""
        if timezone is not None and not between:
            raise UsageError(
                f"{job_option('timezone')} applies to the hours of {job_option('between')}: give "
                "some"
            )
        _zone(timezone or "UTC")
        windows = tuple(DayWindow.parse(text) for text in between)
        return cls(limits=limits, between=windows, timezone=timezone or "UTC")

    def at(self, now_ms: int) -> Limits:
        """Return the limits at a time, in ms since the epoch.

        If the host does not know the time zone, the limits always apply.
        """
        if not self.between:
            return self.limits
        try:
            zone = _zone(self.timezone)
        except UsageError:
            return self.limits
        then = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(zone)
        minute = then.hour * 60 + then.minute
        return self.limits if any(window.holds(minute) for window in self.between) else NO_LIMITS

    def __str__(self) -> str:
        """Like `1,000 rows/s, 8 in flight, 08:00-18:00 Europe/Berlin`; empty: no limits."""
        rows, bytes_count, in_flight = self.limits
        words = [f"{rows:,} rows/s"] if rows else []
        words += [f"{bytes_count / 1e6:,g} MB/s"] if bytes_count else []
        words += [f"{in_flight:,} in flight"] if in_flight else []
        if self.between and words:
            words.append(f"{' '.join(map(str, self.between))} {self.timezone}")
        return ", ".join(words)

    def pack(self) -> str:
        """Return the form that the ledger stores; empty: no limits."""
        if self.limits == NO_LIMITS:
            return ""
        return json.dumps(self.to_json(), separators=(",", ":"))

    @classmethod
    def unpack(cls, packed: str | bytes) -> Pace:
        """Return what `pack` packed."""
        if not packed:
            return NO_PACE
        data = json.loads(packed)
        return cls(
            limits=Limits(data["rows_per_s"], data["bytes_per_s"], data["in_flight"]),
            between=tuple(DayWindow.parse(text) for text in data["between"]),
            timezone=data["timezone"],
        )

    def to_json(self) -> dict[str, Any]:
        """Return the form for programs."""
        return {
            **self.limits._asdict(),
            "between": [str(window) for window in self.between],
            "timezone": self.timezone,
        }


NO_PACE = Pace()


def _zone(name: str) -> ZoneInfo:
    """Return a time zone by its name. Raises `UsageError`."""
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:  # unknown, a folder of zones, a path
        raise UsageError(
            f'there is no time zone "{name}": give a name such as Europe/Berlin or UTC'
        ) from error
