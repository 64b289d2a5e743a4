"""The parts of a date or time that an expression of `patterns` has matched, as numbers."""

import functools
import re
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfoNotFoundError, available_timezones

from ringhaul.cql.calendar import DAY_MS, days_of, month_days, zone_named
from ringhaul.cql.clock_changes import RepeatedTime, SkippedTime, moment_of
from ringhaul.cql.column import quote
from ringhaul.cql.patterns import month_named
from ringhaul.cql.text_format import TextFormat
from ringhaul.option_names import input_option

OFFSET_HOURS_MAX = 18  # as java.time's ZoneOffset


def utc_ms_of_match(match: re.Match[str], fmt: TextFormat) -> int:
    """Return the milliseconds since 1970 UTC of a date and time."""
    milliseconds = int((match.groupdict().get("fraction") or "")[:3].ljust(3, "0"))
    local_ms = (
        days_of_match(match, fmt.language) * DAY_MS + seconds_of_match(match) * 1000 + milliseconds
    )
    zone_text = zone_text_of(match)
    if region := match.groupdict().get("region"):
        zone = known_zone(region)
        if zone_text is None:
            return _moment(match, local_ms, zone, fmt)
    if zone_text is None:
        return _moment(match, local_ms, zone_named(fmt.timezone), fmt)
    if is_offset(zone_text):
        return local_ms - offset_ms(zone_text)
    return _moment(match, local_ms, known_zone(zone_text), fmt)


def is_date_alone(match: re.Match[str]) -> bool:
    """Whether what has matched has no time of day."""
    groups = match.groupdict()
    return not any(groups.get(name) for name in ("hour", "hour12", "minute", "second"))


def _moment(match: re.Match[str], local_ms: int, zone: tzinfo, fmt: TextFormat) -> int:
    """Return the moment of a local time. Raises `ValueError` with the reason."""
    if zone is UTC:
        return local_ms
    try:
        return moment_of(local_ms, zone, fmt.clock_changes, dates=is_date_alone(match))
    except SkippedTime:
        pass
    except RepeatedTime:
        raise ValueError(f"{quote(match[0])} occurs twice in {repeated_words(zone)}") from None
    raise ValueError(f"{quote(match[0])} does not exist in {skipped_words(zone)}")


def skipped_words(zone: tzinfo) -> str:
    """Return where clocks skip a local time, and which options read it."""
    return (
        f"{zone}, where clocks then go forward; {input_option('timezone')} names another zone, "
        f"{input_option('clock-changes')} forward moves such times with the clocks"
    )


def repeated_words(zone: tzinfo) -> str:
    """Return where clocks repeat a local time, and which option reads it."""
    return (
        f"{zone}, where clocks then go back; {input_option('clock-changes')} first or second says "
        "which is meant"
    )


def is_offset(zone: str) -> bool:
    """Whether a zone is an offset or UTC, not the name of another zone."""
    return zone[0] in "+-" or zone.upper() in ("Z", "UTC", "GMT")


@functools.lru_cache(maxsize=64)
def known_zone(name: str) -> tzinfo:
    """Return the zone with an IANA name, in any case. Raises `ValueError`."""
    try:
        return zone_named(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        meant = _zones_by_lower_name().get(name.lower())
        if meant is None:
            raise ValueError(
                f"{quote(name)} is not the name of a zone such as Europe/Paris or CET; other "
                "abbreviations mean several"
            ) from None
        return zone_named(meant)


@functools.cache
def _zones_by_lower_name() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


def days_of_match(match: re.Match[str], language: str) -> int:
    """Return the days since 1970-01-01. Raises `ValueError` for a day that does not exist."""
    groups = match.groupdict()
    if groups.get("year"):
        year = int(groups["year"])
    elif groups.get("year_since_2000"):
        year = 2000 + int(groups["year_since_2000"])
    else:
        year = full_year(groups["year_of_century"])
    if groups.get("month"):
        month = int(groups["month"])
    else:
        month = month_named(groups["month_name"], language)
    day = int(groups["day"])
    if not 1 <= month <= 12:
        raise ValueError(f"{quote(match[0])} has month {month}")
    if not 1 <= day <= month_days(year, month):
        raise ValueError(f"{quote(match[0])} has day {day}, which the month lacks")
    return days_of(year, month, day)


def seconds_of_match(match: re.Match[str]) -> int:
    """Return the seconds since midnight; 0 without a time of day. Raises `ValueError`."""
    groups = match.groupdict()
    hour, minute, second = (int(groups.get(name) or 0) for name in ("hour", "minute", "second"))
    if groups.get("hour12"):
        hour12 = int(groups["hour12"])
        if not 1 <= hour12 <= 12:
            raise ValueError(f"{quote(match[0])} has hour {hour12} of a 12-hour clock")
        hour = hour12 % 12 + afternoon(groups["half"])
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{quote(match[0])} is past 23:59:59")
    return hour * 3600 + minute * 60 + second


def full_year(two_digits: str) -> int:
    """Return the full year by POSIX: 69..99 are 1969..1999, 00..68 are 2000..2068."""
    year = int(two_digits)
    return year + (1900 if year >= 69 else 2000)


def afternoon(half: str) -> int:
    """Return the hours that `am` or `pm` adds."""
    return 12 if half.lower() == "pm" else 0


def zone_text_of(match: re.Match[str]) -> str | None:
    """Return the zone as it is written; None: there is none."""
    groups = match.groupdict()
    return groups.get("zone") or groups.get("date_zone")


def offset_ms(zone: str) -> int:
    """Return the milliseconds of an offset. Raises `ValueError`."""
    if zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if minutes > 59 or hours * 60 + minutes > OFFSET_HOURS_MAX * 60:
        raise ValueError(f"{quote(zone)} is outside the offsets -18:00..+18:00")
    return (hours * 60 + minutes) * (-60_000 if zone[0] == "-" else 60_000)
