"""Due times among which an output that comes back is found out, as seen from a fixed moment."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from ringhaul.schedule.cron import Cron
from ringhaul.schedule.samples import sample_dues
from ringhaul.schedule.timing import Timing
from ringhaul.schedule.windows import offset_changes

NOW_MS = int(datetime(2026, 2, 1, tzinfo=UTC).timestamp()) * 1000
BERLIN, UTC_ZONE = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")


def repeats(form: str, zone: ZoneInfo = UTC_ZONE, **when: object) -> bool:
    dues = sample_dues(Timing(zone=zone, **when), NOW_MS)  # type: ignore[arg-type]
    assert dues == sorted(set(dues)) and len(dues) >= 3
    shown = [datetime.fromtimestamp(ms / 1000, zone).strftime(form) for ms in dues]
    return len(set(shown)) < len(shown)


@pytest.mark.parametrize("every_s", [1, 60, 1200, 3600])
def test_the_hour_that_comes_twice(every_s: int) -> None:
    assert repeats("%Y%m%d-%H%M%S", BERLIN, every_s=every_s)
    assert not repeats("%Y%m%d-%H%M%S%z", BERLIN, every_s=every_s)
    assert not repeats("%Y%m%d-%H%M%S", every_s=every_s)


def test_an_hour_that_two_due_times_are_put_into() -> None:
    # 02:15 is due at the jump, at 03:00
    assert repeats("%Y%m%d-%H", BERLIN, cron=Cron.parse("15 2,3 * * *"))
    assert not repeats("%Y%m%d-%H", BERLIN, cron=Cron.parse("15 1,4 * * *"))


@pytest.mark.parametrize(
    ("cron", "form"),
    [
        *(("30 1 * * *", form) for form in ("%d", "%a", "%m-%d", "%j")),
        *(("0 0 31 * *", form) for form in ("%d", "%m")),
        *(("0 0 29-31 * *", form) for form in ("%d", "%m-%d")),
        ("0 * * * *", "%H"),
    ],
)
def test_what_comes_back_after_a_week_a_month_or_a_year(cron: str, form: str) -> None:
    for zone in (UTC_ZONE, BERLIN, ZoneInfo("America/New_York")):
        assert repeats(form, zone, cron=Cron.parse(cron))
        assert not repeats("%Y-%m-%d-%H%z", zone, cron=Cron.parse(cron))


def test_the_changes_of_a_zones_clocks() -> None:
    def changes(zone: str) -> list[str]:
        found = offset_changes(NOW_MS, ZoneInfo(zone))
        return [f"{datetime.fromtimestamp(at // 1000, UTC):%m-%dT%H:%M} {by}" for at, by in found]

    assert changes("UTC") == changes("Asia/Kolkata") == []
    assert changes("Europe/Berlin")[:2] == ["03-29T01:00 3600000", "10-25T01:00 -3600000"]
    assert changes("Australia/Lord_Howe")[0] == "04-04T15:00 -1800000"
