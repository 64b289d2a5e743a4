"""Whether the text of a template repeats at later due times, and after how long."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from ringhaul.schedule.cron import Cron
from ringhaul.schedule.samples import Repeat, find_repeat
from ringhaul.schedule.timing import Timing
from ringhaul.schedule.windows import Window, offset_changes
from tests.cases import each

NOW = datetime(2026, 2, 1, tzinfo=UTC)
BERLIN, UTC_ZONE = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")
#: An ordinary moment, and moments around 29 February, a year's end and clock changes.
MOMENTS = [
    *(datetime(2026, 1, 7, 12, tzinfo=UTC), datetime(2026, 6, 13, 5, tzinfo=UTC)),
    *(datetime(2027, 3, 28, 1, 30, tzinfo=UTC), datetime(2027, 12, 31, 23, tzinfo=UTC)),
    *(datetime(2027, 10, 31, hour, 30, tzinfo=UTC) for hour in (0, 1)),
    *(datetime(2028, 2, day, 23, tzinfo=UTC) for day in (28, 29)),
]


def timing(when: str, zone: ZoneInfo = UTC_ZONE, window: str | None = None) -> Timing:
    """`when`: cron, or minutes."""
    found = None if window is None else Window.parse(window)
    if when.isdigit():
        return Timing(zone=zone, every_s=int(when) * 60, window=found)
    return Timing(zone=zone, cron=Cron.parse(when), window=found)


def repeat(timing: Timing, form: str, now: datetime = NOW) -> Repeat | None:
    def text(ms: int) -> str:
        return datetime.fromtimestamp(ms / 1000, timing.zone).strftime(form)

    found = find_repeat(timing, int(now.timestamp()) * 1000, text)
    if found is not None:
        assert found.first_ms < found.again_ms > now.timestamp() * 1000
        assert text(found.first_ms) == text(found.again_ms)
    return found


@each(
    ("when", "form", "zone"),
    [
        ("0 1 * * *", "%Y-%m", "UTC"),
        ("15 2,3 * * *", "%Y-%m-%d", "UTC"),
        ("0 1 1,31 * *", "%Y-%m", "UTC"),
        ("0 1 31 12 *", "", "UTC"),
        # A yearly one, one of leap years, and one whose two days are adjacent only in those
        ("0 0 1 1 *", "%m-%d", "Europe/Berlin"),
        ("0 0 29 2 *", "%m-%d", "UTC"),
        ("0 0 28,29 2 *", "%Y", "UTC"),
        ("0 0 28,29 2 *", "%m-%d", "UTC"),
        # 28 February in most years, 29 in the others, and after it the one of March
        ("0 0 28-31 * *", "%d", "UTC"),
        ("0 0 29-31 * *", "%d", "UTC"),
        ("0 0 1 * *", "%a", "UTC"),
        ("0 0 29 2 */2", "", "UTC"),
        # Intervals that rarely begin twice within the period that their output names
        ("50", "%Y-%m-%dT%H", "UTC"),
        ("59", "%Y-%m-%dT%H", "Asia/Kolkata"),
        ("1380", "%Y-%m-%d", "America/New_York"),
        # The hour that occurs twice, for consecutive due times and others
        ("60", "%Y%m%d-%H", "Europe/Berlin"),
        ("20", "%Y%m%d-%H%M", "Europe/Berlin"),
        ("1", "%Y%m%d-%H%M", "Australia/Lord_Howe"),
        ("*/30 * * * *", "%Y%m%d-%H%M", "America/New_York"),
        # The day that has 25 hours
        ("1440", "%Y-%m-%d", "Atlantic/Azores"),
        # 02:15 is due at the jump, at 03:00
        ("15 2,3 * * *", "%Y%m%d-%H", "Europe/Berlin"),
    ],
)
def test_a_text_that_repeats_at_once_is_found_from_any_moment(
    when: str, form: str, zone: str
) -> None:
    for now in MOMENTS:
        found = repeat(timing(when, ZoneInfo(zone)), form, now)
        assert found is not None and found.at_once, now


@each(
    ("when", "form", "zone"),
    [
        ("0 1 * * *", "%Y-%m-%d", "Europe/Berlin"),
        ("0 1 * * *", "%a", "America/New_York"),
        ("30 2 * * *", "%Y-%m-%d", "Europe/Berlin"),
        ("15 1,4 * * *", "%Y%m%d-%H", "Europe/Berlin"),
        ("0 0 29 2 *", "%Y", "UTC"),
        ("0 0 1 1 *", "%Y", "UTC"),
        ("0 0 31 * *", "%m", "UTC"),
        ("60", "%H", "UTC"),
        ("20", "%Y%m%d-%H%M%z", "Europe/Berlin"),
        ("1440", "%Y-%m-%d", "America/New_York"),
    ],
)
def test_a_text_that_repeats_later_or_never_is_so_from_any_moment(
    when: str, form: str, zone: str
) -> None:
    for now in MOMENTS:
        found = repeat(timing(when, ZoneInfo(zone)), form, now)
        assert found is None or not found.at_once, now


@each(
    ("when", "form", "days"),
    [
        ("1", "%M", 1 / 24),
        ("60", "%H", 1),
        ("*/5 * * * *", "%H%M", 1),
        ("0 */6 * * *", "%H", 1),
        ("30 1 * * *", "%a", 7),
        ("30 1 * * *", "%d", 28),
        ("30 1 * * *", "%m-%d", 365),
        ("30 1 * * *", "%j", 365),
        ("30 1 * * mon-fri", "%d", 28),
        ("30 1 * * mon", "%V", 371),
        ("0 0 1 * *", "%b", 365),
        ("0 0 1,15 * *", "%d", 28),
        ("0 0 31 * *", "%m", 365),
        ("0 0 1 1,7 *", "%b", 365),
    ],
)
def test_after_how_long_a_text_repeats(when: str, form: str, days: float) -> None:
    for zone in (UTC_ZONE, ZoneInfo("Asia/Kolkata")):
        found = repeat(timing(when, zone), form)
        assert found is not None and not found.at_once
        assert found.again_ms - found.first_ms == days * 86_400_000
        assert found.first_ms < (NOW.timestamp() + 200 * 86_400) * 1000, (
            "a due time in the near future"
        )
        assert repeat(timing(when, zone), f"%G%Y{form}-%m-%d-%H%M") is None


def test_a_window_without_due_times_and_rare_ones() -> None:
    assert repeat(timing("0 12 * * *", window="01:00-05:00"), "") is None
    found = repeat(timing("20", BERLIN, "01:00-02:30"), "%H%M")
    assert found is not None and found.again_ms - found.first_ms == 86_400_000
    found = repeat(timing("20", BERLIN, "01:00-02:50"), "%Y%m%d-%H")
    assert found is not None and found.at_once


def test_the_changes_of_a_zones_clocks() -> None:
    def changes(zone: str) -> list[str]:
        found = offset_changes(int(NOW.timestamp()) * 1000, ZoneInfo(zone))
        return [f"{datetime.fromtimestamp(at // 1000, UTC):%m-%dT%H:%M} {by}" for at, by in found]

    assert changes("UTC") == changes("Asia/Kolkata") == []
    assert changes("Europe/Berlin")[:2] == ["03-29T01:00 3600000", "10-25T01:00 -3600000"]
    assert changes("Australia/Lord_Howe")[0] == "04-04T15:00 -1800000"
