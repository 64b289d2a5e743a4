"""When a schedule is due: time zones, the two jumps of the clock, windows, intervals."""

from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from ringhaul.schedule.cron import Cron
from ringhaul.schedule.times import due_ms_of, duration_text, parse_duration_s, run_id
from ringhaul.schedule.timing import Timing
from ringhaul.schedule.windows import Window
from tests.cases import each


def timing(
    cron: str = "", *, every_s: int = 0, zone: str = "Europe/Berlin", window: str = ""
) -> Timing:
    return Timing(
        zone=ZoneInfo(zone),
        cron=Cron.parse(cron) if cron else None,
        every_s=every_s,
        window=Window.parse(window) if window else None,
    )


def at(text: str) -> int:
    """Milliseconds of a UTC time such as `2026-03-29 01:00`."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1000


def text_of(ms: int | None) -> str:
    assert ms is not None
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def dues(when: Timing, after: str, count: int) -> list[str]:
    """The next due times after a moment, in UTC."""

    def each():  # type: ignore[no-untyped-def]
        ms = at(after)
        while (ms := when.due_after(ms)) is not None:
            yield text_of(ms)

    return list(islice(each(), count))


# --- cron in a zone. Berlin's clocks jump on 2026-03-29 at 01:00 UTC (02:00 -> 03:00) and on
# 2026-10-25 at 01:00 UTC (03:00 -> 02:00).


def test_a_time_of_day_is_in_the_zone() -> None:
    winter, summer = "2026-01-10 00:00", "2026-07-10 00:00"
    assert dues(timing("30 1 * * *"), winter, 2) == ["2026-01-10 00:30", "2026-01-11 00:30"]
    assert dues(timing("30 1 * * *"), summer, 2) == ["2026-07-10 23:30", "2026-07-11 23:30"]
    assert dues(timing("30 1 * * *", zone="UTC"), winter, 1) == ["2026-01-10 01:30"]


def test_a_skipped_time_is_due_at_the_clock_change() -> None:
    found = dues(timing("30 2 * * *"), "2026-03-27 12:00", 3)
    assert found == ["2026-03-28 01:30", "2026-03-29 01:00", "2026-03-30 00:30"]


def test_several_skipped_times_are_due_once() -> None:
    found = dues(timing("*/20 2,3 * * *"), "2026-03-28 12:00", 4)
    assert found == [f"2026-03-29 01:{minute}" for minute in ("00", "20", "40")] + [
        "2026-03-30 00:00"
    ]


def test_a_time_that_occurs_twice_is_due_once() -> None:
    found = dues(timing("30 2 * * *"), "2026-10-24 12:00", 2)
    assert found == ["2026-10-25 00:30", "2026-10-26 01:30"]


def test_an_hourly_schedule_is_due_in_both_repeated_hours() -> None:
    found = dues(timing("30 * * * *"), "2026-10-24 23:00", 4)
    assert found == ["2026-10-24 23:30"] + [f"2026-10-25 {hour:02}:30" for hour in (0, 1, 2)]


def test_a_zone_whose_clock_change_is_at_midnight() -> None:
    # Cuba's clocks jumped from 00:00 to 01:00 on 2024-03-10, at 05:00 UTC.
    found = dues(timing("0 0 * * *", zone="America/Havana"), "2024-03-09 12:00", 2)
    assert found == ["2024-03-10 05:00", "2024-03-11 04:00"]


def test_the_last_due_time_before_a_moment() -> None:
    daily = timing("30 1 * * *", zone="UTC")
    now = at("2026-01-10 12:00")
    assert text_of(daily.due_last(0, now)) == "2026-01-10 01:30"
    assert text_of(daily.due_last(at("2026-01-09 00:00"), at("2026-01-10 01:29"))) == (
        "2026-01-09 01:30"
    )
    assert daily.due_last(at("2026-01-10 01:30"), now) is None
    assert text_of(daily.due_last(at("2026-01-10 01:29"), at("2026-01-10 01:30"))) == (
        "2026-01-10 01:30"
    )


def test_a_due_time_of_more_than_31_days_ago_is_forgotten() -> None:
    yearly = timing("0 0 1 1 *", zone="UTC")
    assert yearly.due_last(0, at("2026-01-31 12:00")) == at("2026-01-01 00:00")
    assert yearly.due_last(0, at("2026-02-02 12:00")) is None


def test_a_due_time_decades_ahead_is_found() -> None:
    assert dues(timing("0 0 29 feb *", zone="UTC"), "2096-03-01 00:00", 1) == ["2104-02-29 00:00"]


# --- intervals


def test_an_interval_is_counted_from_1970() -> None:
    found = dues(timing(every_s=900), "2026-01-10 12:07", 3)
    assert found == ["2026-01-10 12:15", "2026-01-10 12:30", "2026-01-10 12:45"]
    assert text_of(timing(every_s=900).due_last(0, at("2026-01-10 12:29"))) == "2026-01-10 12:15"
    assert timing(every_s=900).due_last(at("2026-01-10 12:15"), at("2026-01-10 12:29")) is None


# --- windows


def test_due_times_outside_the_window_do_not_count() -> None:
    found = dues(timing(every_s=3600, window="01:00-03:00", zone="UTC"), "2026-01-10 00:30", 3)
    assert found == ["2026-01-10 01:00", "2026-01-10 02:00", "2026-01-11 01:00"]
    hourly = timing("15 * * * *", window="01:00-03:00", zone="UTC")
    assert dues(hourly, "2026-01-10 00:30", 3) == [
        "2026-01-10 01:15",
        "2026-01-10 02:15",
        "2026-01-11 01:15",
    ]


def test_a_window_over_midnight_in_a_zone() -> None:
    nights = timing(every_s=7200, window="22:00-04:00")  # 21:00 to 03:00 UTC in winter
    found = dues(nights, "2026-01-10 12:00", 4)
    assert found == ["2026-01-10 22:00", "2026-01-11 00:00", "2026-01-11 02:00", "2026-01-11 22:00"]
    assert text_of(nights.due_last(0, at("2026-01-11 12:00"))) == "2026-01-11 02:00"
    assert nights.in_window(at("2026-01-11 02:59"))
    assert not nights.in_window(at("2026-01-11 03:00"))
    assert not nights.in_window(at("2026-01-10 20:59"))
    assert nights.in_window(at("2026-01-10 21:00"))
    assert text_of(nights.opens_after(at("2026-01-11 12:00"))) == "2026-01-11 21:00"


def test_a_window_on_the_days_of_a_clock_change() -> None:
    nights = timing(every_s=1800, window="01:00-05:00")
    # Spring: 01:00 to 05:00 on the clock is three hours
    assert len(dues_of_day(nights, "2026-03-28 12:00", "2026-03-29 12:00")) == 6
    # Autumn: five hours
    assert len(dues_of_day(nights, "2026-10-24 12:00", "2026-10-25 12:00")) == 10


def dues_of_day(when: Timing, start: str, end: str) -> list[str]:
    return [due for due in dues(when, start, 100) if due < end]


def test_cron_within_a_window_on_the_days_of_a_clock_change() -> None:
    # 02:15 is due at the clock change, 03:00, when a window until 02:30 also closes
    nightly = timing("15 2 * * *", window="01:00-02:30")
    assert dues(nightly, "2026-03-27 12:00", 2) == ["2026-03-28 01:15", "2026-03-30 00:15"]
    assert nightly.due_last(at("2026-03-28 12:00"), at("2026-03-29 12:00")) is None
    longer = timing("15 2 * * *", window="01:00-03:30")
    assert dues(longer, "2026-03-28 12:00", 1) == ["2026-03-29 01:00"]
    # The second 02:15 is after the window, which closes at the first 02:30
    often = timing("15 * * * *", window="01:00-02:30")
    assert dues(often, "2026-10-24 12:00", 3) == [
        *("2026-10-24 23:15", "2026-10-25 00:15", "2026-10-26 00:15")
    ]


def test_no_window_is_always_open() -> None:
    assert timing(every_s=60).in_window(0)
    assert timing(every_s=60).opens_after(0) is None


@pytest.mark.parametrize(
    "text", ["1:00-5:00", "25:00-03:00", "01:60-02:00", "01:00", "03:00-03:00"]
)
def test_an_invalid_window_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="two times of the day"):
        Window.parse(text)


def test_a_window_knows_its_length_and_text() -> None:
    assert Window.parse("22:00 - 04:30").length_s == 6.5 * 3600
    assert Window.parse("01:00-05:00").length_s == 4 * 3600
    assert Window.parse("22:00 - 04:30").text == "22:00-04:30"


def test_different_timings_have_different_texts() -> None:
    texts = {
        timing("0 1 * * *").text,
        timing("0 2 * * *").text,
        timing("0 1 * * *", zone="UTC").text,
        timing("0 1 * * *", window="01:00-02:00").text,
        timing(every_s=60).text,
        timing(every_s=60, window="01:00-02:00").text,
    }
    assert len(texts) == 6


# --- names and durations


def test_a_run_is_named_by_its_due_time() -> None:
    assert run_id(at("2026-11-20 01:30")) == "20261120T013000Z"
    assert due_ms_of("20261120T013000Z") == at("2026-11-20 01:30")


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("15m", 900), ("2 h", 7200), ("1d", 86_400), ("0s", 0)]
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration_s(text) == seconds


@each("text", ["", "15", "m", "1.5h", "-1s", "1h30m", "1w", 15, None, True])
def test_invalid_durations_are_refused(text: object) -> None:
    with pytest.raises(ValueError, match='such as "90s"'):
        parse_duration_s(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.3, "0.3s"), (5.0, "5s"), (90, "1m30s"), (3661, "1h01m"), (93_600, "1d02h")],
)
def test_durations_as_text(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
