"""Due times against an oracle without arithmetic: it walks through the minutes of some days."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from ringhaul.schedule.cron import Cron
from ringhaul.schedule.timing import Timing
from ringhaul.schedule.windows import Window

MINUTE_MS = 60_000
#: Each has a clock change in the walked days, except the last.
STARTS = {
    "Europe/Berlin": ("2026-03-28", "2026-10-24"),
    "America/Havana": ("2024-03-09", "2024-11-02"),  # at midnight
    "Australia/Lord_Howe": ("2026-04-04", "2026-10-03"),  # by half an hour
    "Asia/Kolkata": ("2026-01-01",),
}
places = st.sampled_from([(zone, start) for zone, starts in STARTS.items() for start in starts])


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    several = st.sets(number, min_size=1, max_size=4).map(lambda s: ",".join(map(str, sorted(s))))
    steps = st.sampled_from(["*", "*", "*/2", "*/7"])
    return several | steps


times = st.integers(0, 1439).map(lambda minute: f"{minute // 60:02}:{minute % 60:02}")
windows = st.tuples(times, times).filter(lambda pair: pair[0] != pair[1]).map("-".join)
crons = st.tuples(field(0, 59), field(0, 5), st.just("*"), st.just("*"), field(0, 6)).map(" ".join)


def walked(cron: Cron, zone: ZoneInfo, start_ms: int, end_ms: int) -> list[int]:
    """The due times after `start_ms`, up to `end_ms`, found by looking at each minute's clock."""
    found = []
    seen_wall: set[datetime] = set()
    before = wall_at(start_ms - 300 * MINUTE_MS, zone)
    for ms in range(start_ms - 299 * MINUTE_MS, end_ms + 1, MINUTE_MS):
        now = wall_at(ms, zone)
        # The time that the clock shows now, and the times that it skipped
        shown, at = {now}, before + timedelta(minutes=1)
        while at < now:
            shown.add(at)
            at += timedelta(minutes=1)
        due = {w for w in shown if cron.on(w.date()) and w.hour in cron.hours}
        due = {w for w in due if w.minute in cron.minutes}
        again = now in seen_wall
        if due and (not again or cron.hour_is_free) and ms > start_ms:
            found.append(ms)
        seen_wall |= shown
        before = now
    return found


def wall_at(ms: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone(zone).replace(tzinfo=None)


@settings(max_examples=60, deadline=None)
@given(place=places, text=crons)
def test_cron_in_any_zone_follows_its_clock(place: tuple[str, str], text: str) -> None:
    zone = ZoneInfo(place[0])
    start_ms = int(datetime.fromisoformat(place[1]).replace(tzinfo=UTC).timestamp()) * 1000
    end_ms = start_ms + 2 * 24 * 60 * MINUTE_MS
    cron = Cron.parse(text)
    timing = Timing(zone=zone, cron=cron)
    expected = walked(cron, zone, start_ms, end_ms)

    found, at = [], start_ms
    while (due := timing.due_after(at)) is not None and due <= end_ms:
        found.append(due)
        at = due
    assert found == expected
    # and the last due time of any interval is the last of those
    for cut in range(0, 48, 7):
        until = start_ms + cut * 60 * MINUTE_MS
        before = [due for due in expected if due <= until]
        assert timing.due_last(start_ms, until) == (before[-1] if before else None)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), place=places, text=crons)
def test_cron_within_a_window_is_due_when_a_run_may_start(
    data: st.DataObject, place: tuple[str, str], text: str
) -> None:
    zone, cron = ZoneInfo(place[0]), Cron.parse(text)
    window = Window.parse(data.draw(windows))
    start_ms = int(datetime.fromisoformat(place[1]).replace(tzinfo=UTC).timestamp()) * 1000
    end_ms = start_ms + 2 * 24 * 60 * MINUTE_MS
    within, without = (Timing(zone=zone, cron=cron, window=w) for w in (window, None))

    def dues(timing: Timing) -> list[int]:
        found, at = [], start_ms
        while (due := timing.due_after(at)) is not None and due <= end_ms:
            found.append(due)
            at = due
        return found

    found = dues(within)
    assert all(within.in_window(due) for due in found)
    # Only times outside of the window are left out: by the clock, unless moved by a clock change,
    # or by the moment
    for due in set(dues(without)) - set(found):
        shown = wall_at(due, zone).time()
        put = shown.hour not in cron.hours or shown.minute not in cron.minutes
        assert put or not window.holds(shown) or not within.in_window(due)


@settings(max_examples=60, deadline=None)
@given(
    place=places,
    window=windows,
    every_min=st.integers(1, 300),
    offset_min=st.integers(0, 3000),
)
def test_intervals_within_a_window(
    place: tuple[str, str], window: str, every_min: int, offset_min: int
) -> None:
    parsed = Window.parse(window)
    every_s = min(every_min * 60, parsed.length_s)
    zone = ZoneInfo(place[0])
    timing = Timing(zone=zone, every_s=every_s, window=parsed)
    start = int(datetime.fromisoformat(place[1]).replace(tzinfo=UTC).timestamp()) * 1000
    at = start + offset_min * MINUTE_MS

    due = timing.due_after(at)

    assert due is not None and due > at
    assert due % (every_s * 1000) == 0
    assert timing.in_window(due)
    # It is the first: no earlier multiple is in the window
    step = every_s * 1000
    between = range((at // step + 1) * step, due, step)
    assert not any(timing.in_window(ms) for ms in between[-200:])
    # and the last one, searched backwards, is the same
    assert timing.due_last(at, due) == due
    assert timing.due_last(at, due - 1) is None
