"""Moments written by a pattern are read back by it as the moments meant, around every change of
clocks, whatever else the format reads."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringhaul.cql.spell.patterned import Unspellable, spell_moments
from ringhaul.cql.text import encode_text
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.value_words import CLOCK_CHANGES

ZONES = sorted(zoneinfo.available_timezones())
#: Pattern -> the milliseconds that it tells apart.
STEPS = {
    "yyyy-MM-dd HH:mm": 60_000,
    "yyyy-MM-dd HH:mm:ss": 1000,
    "%d.%m.%Y %H:%M:%S.%f": 1,
    "yyyy-MM-dd HH": 3_600_000,
    "yyyy-MM-dd": 86_400_000,
    "dd/MM/yy hh:mm a": 60_000,
    "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'": 1,  # in local time, against its letter Z
    "yyyy-MM-dd HH:mm:ss VV": 1000,
    "yyyy-MM-dd HH:mm XXX": 60_000,
    "%Y-%m-%d %H:%M %Z": 60_000,
    "yyyyMMddHHmmss": 1000,
    "[EEE, ]d MMM yyyy HH:mm[:ss]": 1000,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def local(moment_ms: int, zone: zoneinfo.ZoneInfo) -> datetime:
    return (_EPOCH + timedelta(milliseconds=moment_ms)).astimezone(zone)


def change_after(start_s: int, zone: zoneinfo.ZoneInfo) -> int:
    """Return the second of the first change of clocks within two years, or `start_s`."""
    month = 30 * 86_400
    for low in range(start_s, start_s + 25 * month, month):
        high = low + month
        if local(low * 1000, zone).utcoffset() == local(high * 1000, zone).utcoffset():
            continue
        while high - low > 1:
            middle = (low + high) // 2
            same = local(low * 1000, zone).utcoffset() == local(middle * 1000, zone).utcoffset()
            low, high = (middle, high) if same else (low, middle)
        return high
    return start_s


@settings(max_examples=150)
@given(data=st.data())
def test_a_written_moment_is_read_as_the_one_meant(data: st.DataObject) -> None:
    zone = zoneinfo.ZoneInfo(data.draw(st.sampled_from(ZONES)))
    change_ms = change_after(data.draw(st.integers(-3_000_000_000, 4_000_000_000)), zone) * 1000
    apart = st.integers(-400, 400).map(lambda minutes: minutes * 60_000)
    near = st.builds(int.__add__, apart, st.sampled_from([0, 0, -1, 1, 999, -1000]))
    moments = [change_ms + by for by in data.draw(st.lists(near, min_size=1, max_size=30))]
    patterns = data.draw(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=3))
    fmt = TextFormat(
        timestamp_formats=tuple(patterns),
        timezone=zone.key,
        clock_changes=data.draw(st.sampled_from(["", *CLOCK_CHANGES])),
    )
    array = pa.array([None, *moments], pa.int64()).cast(pa.timestamp("ms", "UTC"))
    texts = spell_moments("timestamp", array, fmt)
    cells, bad = encode_text("timestamp", texts.cast(pa.binary()), fmt, null_length=-1)
    assert not bad
    none, *stored = cells.values.to_pylist()
    assert texts[0].as_py() is None and not none
    step_ms = STEPS[patterns[0]]
    for moment, cell in zip(moments, stored, strict=True):
        found = int.from_bytes(cell, "big", signed=True)
        meant, read = local(moment, zone), local(found, zone)
        if step_ms == 86_400_000:
            assert meant.date() == read.date() and found <= moment
        else:
            assert 0 <= moment - found < step_ms
            assert found == moment or meant.utcoffset() == read.utcoffset()


def test_the_second_of_two_equal_hours_is_iso_8601() -> None:
    fmt = TextFormat(timestamp_formats=("yyyy-MM-dd HH:mm",), timezone="Europe/Berlin")
    start = datetime(2024, 10, 27, tzinfo=UTC)
    array = pa.array([start + timedelta(minutes=30 * step) for step in range(5)])
    assert spell_moments("timestamp", array.cast(pa.timestamp("ms", "UTC")), fmt).to_pylist() == [
        "2024-10-27 02:00",
        "2024-10-27 02:30",
        "2024-10-27T01:00:00.000Z",
        "2024-10-27T01:30:00.000Z",
        "2024-10-27 03:00",
    ]


@pytest.mark.parametrize(
    ("kind", "formats", "value", "text"),
    [
        # The usual text would be read by a pattern: of local time, or with the month last.
        (
            "timestamp",
            ("yyyy-MM-dd HH:mm", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"),
            1_729_990_800_000,
            "+2024-10-27T01:00:00.000+00:00",
        ),
        ("date", ("dd/MM/yy", "yyyy-dd-MM"), -7304, "+1950-01-02"),
    ],
)
def test_iso_8601_that_a_pattern_would_read_is_written_otherwise(
    kind: str, formats: tuple[str, ...], value: int, text: str
) -> None:
    fmt = TextFormat(timezone="Europe/Berlin", **{f"{kind}_formats": formats})  # type: ignore[arg-type]
    form = pa.date32() if kind == "date" else pa.timestamp("ms", "UTC")
    width = pa.int32() if kind == "date" else pa.int64()
    assert spell_moments(kind, pa.array([value], width).cast(form), fmt).to_pylist() == [text]


def test_a_moment_without_a_text_is_refused() -> None:
    formats = ("HH:mm", "mm:HH:ss.SSSSSSSSS")  # the second reads what the first cannot show
    array = pa.array([None, 3_600_000_000_123], pa.int64()).cast(pa.time64("ns"))
    fmt = TextFormat(time_formats=formats)
    assert spell_moments("time", array, fmt).to_pylist() == [None, "01:00"]
    day = TextFormat(date_formats=("dd/MM/yy", "+yyyy-dd-MM", "yyyy-dd-MM"))
    dates = pa.array([-7304], pa.int32()).cast(pa.date32())
    with pytest.raises(Unspellable, match=r"date \+1950-01-02 cannot be written .* --date-format"):
        spell_moments("date", dates, day)
