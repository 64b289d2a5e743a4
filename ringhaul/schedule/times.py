"""Durations as people write them, and ids of due times."""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"(\d{1,9}) ?([smhd])")
_RUN_ID = "%Y%m%dT%H%M%SZ"

#: The year 2100, the latest due time that templates and records are checked for.
FAR_MS = 4_102_444_800_000


def parse_duration_s(text: object) -> int:
    """Return the seconds of `"90s"`, `"15m"`, `"2h"` or `"1d"`. Raises `ValueError` saying what was
    expected."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError('expected a time such as "90s", "15m", "2h" or "1d"')
    return int(match[1]) * _UNITS_S[match[2]]


def duration_text(seconds: float) -> str:
    """Format seconds, 90 as `1m30s`: below a minute with tenths, above an hour without seconds."""
    if seconds < 60:
        return f"{seconds:.1f}s".replace(".0s", "s")
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86_400}d{whole % 86_400 // 3600:02d}h"


def run_id(due_ms: int) -> str:
    """Return the id of the run of a due time, to the second, such as `20261120T013000Z`."""
    return moment(due_ms).strftime(_RUN_ID)


def due_ms_of(run: str) -> int:
    """Return the due time in a `run_id`. Raises `ValueError` if `run` is not one."""
    return int(datetime.strptime(run, _RUN_ID).replace(tzinfo=UTC).timestamp()) * 1000


def read_due(text: str, zone: ZoneInfo) -> int:
    """Return a due time (ms since 1970) that a user wrote: with an offset or Z, as a run's id, or,
    if `zone` is UTC, without either. Raises `ValueError` with what to write instead."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text[:40]!r} is no time such as 2026-11-20T00:30Z") from None
    if found.tzinfo is None:
        here, utc = found.replace(tzinfo=zone), found.replace(tzinfo=UTC)
        if here.utcoffset() != utc.utcoffset():
            raise ValueError(
                f"{text!r} may be UTC or {zone.key}: write {_short(utc)} or {_short(here)}"
            )
        found = utc
    return to_ms(found)


def _short(when: datetime) -> str:
    """Return a time with its offset, without seconds that are 0."""
    exact = "seconds" if when.second else "minutes"
    return when.isoformat(timespec=exact).replace("+00:00", "Z")


def moment(ms: int) -> datetime:
    """Return the datetime in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def to_ms(when: datetime) -> int:
    """Return an aware datetime as milliseconds since 1970, rounded down to a second."""
    return int(when.timestamp() // 1) * 1000
