"""Limits by time of day: the hours of a time zone, in winter and summer, across midnight."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from ringhaul.errors import UsageError
from ringhaul.ledger.pace import NO_LIMITS, NO_PACE, DayWindow, Limits, Pace

SLOW = Limits(rows_per_s=1000)


def at(pace: Pace, text: str, zone: str = "UTC") -> Limits:
    """The limits in force at a local time."""
    then = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    return pace.at(round(then.timestamp() * 1000))


def test_without_hours_limits_hold_always() -> None:
    assert Pace.of(SLOW).at(0) == SLOW
    assert NO_PACE.at(0) == NO_LIMITS


@pytest.mark.parametrize(
    ("local", "limits"),
    [
        ("2026-01-15 07:59:59", NO_LIMITS),
        ("2026-01-15 08:00:00", SLOW),
        ("2026-01-15 17:59:59", SLOW),
        ("2026-01-15 18:00:00", NO_LIMITS),
        ("2026-07-15 08:00:00", SLOW),  # in summer an hour earlier by UTC
        ("2026-07-15 07:59:59", NO_LIMITS),
        ("2026-07-15 22:30:00", SLOW),
        ("2026-07-16 01:59:59", SLOW),  # after midnight
        ("2026-07-16 02:00:00", NO_LIMITS),
    ],
)
def test_hours_are_those_of_the_zone(local: str, limits: Limits) -> None:
    pace = Pace.of(SLOW, ("08:00-18:00", "22:00-02:00"), "Europe/Berlin")
    assert at(pace, local, "Europe/Berlin") == limits


def minutes_within(pace: Pace, day: str, zone: str) -> int:
    """Minutes of a local day for which the limits hold."""
    midnight = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    end = (midnight + timedelta(days=1)).astimezone(UTC)
    now, count = midnight.astimezone(UTC), 0
    while now < end:
        count += pace.at(round(now.timestamp() * 1000)) != NO_LIMITS
        now += timedelta(minutes=1)
    return count


@pytest.mark.parametrize(
    ("day", "minutes"),
    [
        ("2026-06-01", 120),
        ("2026-03-29", 60),  # 02:00 to 03:00 is left out
        ("2026-10-25", 180),  # 02:00 to 03:00 comes twice
    ],
)
def test_summer_time_makes_the_hours_longer_or_shorter(day: str, minutes: int) -> None:
    pace = Pace.of(SLOW, ("02:00-04:00",), "Europe/Berlin")
    assert minutes_within(pace, day, "Europe/Berlin") == minutes


def test_a_whole_day() -> None:
    pace = Pace.of(SLOW, ("00:00-24:00",))
    assert minutes_within(pace, "2026-06-01", "UTC") == 24 * 60


@pytest.mark.parametrize(
    "text", ["", "8-18", "08:00", "08:00-08:00", "24:00-08:00", "08:60-09:00", "08:00-24:01", "x"]
)
def test_invalid_hours_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="give HH:MM-HH:MM"):
        DayWindow.parse(text)


@pytest.mark.parametrize("zone", ["Mars/Base", "../etc/passwd", "Europe", "/etc/localtime"])
def test_an_unknown_zone_is_refused(zone: str) -> None:
    with pytest.raises(UsageError, match="no time zone"):
        Pace.of(SLOW, ("08:00-18:00",), zone)


def test_a_zone_without_hours_is_refused() -> None:
    with pytest.raises(UsageError, match="--between"):
        Pace.of(SLOW, (), "UTC")


def test_a_worker_that_does_not_know_the_zone_uses_the_lower_limits() -> None:
    pace = Pace(limits=SLOW, between=(DayWindow(480, 1080),), timezone="Mars/Base")
    assert at(pace, "2026-01-15 03:00") == SLOW


@pytest.mark.parametrize(
    ("pace", "words"),
    [
        (NO_PACE, ""),
        (Pace.of(Limits(in_flight=8)), "8 in flight"),
        (
            Pace.of(Limits(1_000, 2_500_000, 8), ("8:00-18:00", "22:00-02:00"), "Europe/Berlin"),
            "1,000 rows/s, 2.5 MB/s, 8 in flight, 08:00-18:00 22:00-02:00 Europe/Berlin",
        ),
    ],
)
def test_a_packed_pace_is_restored_and_spelled_out(pace: Pace, words: str) -> None:
    assert Pace.unpack(pace.pack().encode()) == pace
    assert str(pace) == words


@pytest.mark.parametrize(
    ("in_flight", "running", "each"), [(100, 3, 33), (2, 3, 1), (8, 0, 8), (0, 3, 0)]
)
def test_the_in_flight_limit_is_shared_by_the_running_units(
    in_flight: int, running: int, each: int
) -> None:
    assert Limits(in_flight=in_flight).shared(running).in_flight == each
