"""Local times that clocks skip or repeat: what is read, refused and noted."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest

from ringhaul.cql.calendar import zone_named
from ringhaul.cql.clock_changes import REPEATED, moments_of
from ringhaul.cql.column import BadValue
from ringhaul.cql.text import encode_text
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.typed import encode_typed
from ringhaul.cql.types import CqlType
from ringhaul.ledger.kinds import JobKind
from ringhaul.transform.values import encode_values
from tasks.command_line import spelled_as

SKIPPED, REPEATED_TIME = "2026-03-29 02:30", "2026-10-25 02:30"
FIRST, SECOND = datetime(2026, 10, 25, 0, 30), datetime(2026, 10, 25, 1, 30)
FORWARD = datetime(2026, 3, 29, 1, 30)


def read(text: str, zone: str = "Europe/Berlin", **options: object) -> datetime | str:
    """Return the moment of a text in UTC, or why it is refused; in both passes."""
    fmt = TextFormat(timezone=zone, **options)  # type: ignore[arg-type]
    # A fraction of four digits or more, and one with a comma: other layouts.
    texts = [text, text, *([f"{text}:00,0000"] if text.count(":") == 1 else [])]
    cells, bad = encode_text("timestamp", pa.array(texts).cast(pa.binary()), fmt, null_length=-1)
    if bad:
        assert [one.row for one in bad] == list(range(len(texts)))
        return bad[0].reason
    assert cells.fixed_values is not None
    moments = {int(ms) for ms in cells.fixed_values.astype(np.int64)}
    assert len(moments) == 1
    return datetime.fromtimestamp(moments.pop() / 1000, UTC).replace(tzinfo=None)


@pytest.mark.parametrize(
    ("choice", "repeated", "skipped"),
    [
        ("", FIRST, "does not exist in Europe/Berlin"),
        ("first", FIRST, "does not exist in Europe/Berlin"),
        ("second", SECOND, "does not exist in Europe/Berlin"),
        ("forward", FIRST, FORWARD),
        ("reject", "occurs twice in Europe/Berlin", "does not exist in Europe/Berlin"),
    ],
)
def test_the_format_says_what_is_read(
    choice: str, repeated: datetime | str, skipped: datetime | str
) -> None:
    for text, wanted in ((REPEATED_TIME, repeated), (SKIPPED, skipped)):
        found = read(text, clock_changes=choice)
        if isinstance(wanted, datetime):
            assert found == wanted
        else:
            assert isinstance(found, str)
            assert found.startswith(f'cast timestamp: "{text}" {wanted}, where clocks')
            assert "--clock-changes" in found


def test_times_beside_the_change_are_read_as_ever() -> None:
    for choice in ("", "second", "reject"):
        assert read("2026-03-29 01:59", clock_changes=choice) == datetime(2026, 3, 29, 0, 59)
        assert read("2026-03-29 03:00", clock_changes=choice) == datetime(2026, 3, 29, 1)
        assert read("2026-10-25 01:59", clock_changes=choice) == datetime(2026, 10, 24, 23, 59)
        assert read("2026-10-25 03:00", clock_changes=choice) == datetime(2026, 10, 25, 2)


def test_a_time_with_a_zone_or_an_offset_is_read_as_it_says() -> None:
    fmt = {"accept": ("zones",), "clock_changes": "reject"}
    assert read("2026-10-25 02:30+01:00", **fmt) == SECOND
    assert read("2026-10-25 02:30+02:00[Europe/Berlin]", "UTC", **fmt) == FIRST
    named = read("2026-10-25 02:30 Europe/Paris", "UTC", **fmt)
    assert isinstance(named, str) and "occurs twice in Europe/Paris" in named
    named = read("2026-03-29 02:30 Europe/Paris", "UTC", accept=("zones",))
    assert isinstance(named, str) and "does not exist in Europe/Paris" in named


@pytest.mark.parametrize("choice", ["", "second", "reject"])
@pytest.mark.parametrize(
    ("zone", "day", "start"),
    [
        ("Africa/Cairo", "2024-04-26", datetime(2024, 4, 25, 22)),  # 00:00 is skipped
        ("America/Havana", "2024-11-03", datetime(2024, 11, 3, 4)),  # 00:00 is repeated
        ("America/Toronto", "1919-03-31", datetime(1919, 3, 31, 4, 30)),  # from 23:30 to 00:30
    ],
)
def test_a_date_is_the_start_of_its_local_day(
    choice: str, zone: str, day: str, start: datetime
) -> None:
    assert read(day, zone, clock_changes=choice) == start
    fmt = TextFormat(timezone=zone, clock_changes=choice)
    column = pa.array([date.fromisoformat(day)])
    cells, faults = encode_typed(CqlType("timestamp"), column, fmt, null_length=-1)
    assert not faults and cells.fixed_values is not None
    assert int(cells.fixed_values[0]) == int(start.replace(tzinfo=UTC).timestamp() * 1000)


def test_a_day_that_a_zone_never_had_is_refused() -> None:
    found = read("2011-12-30", "Pacific/Apia")
    assert isinstance(found, str) and "does not exist in Pacific/Apia" in found


def test_columns_of_arrow_and_values_of_python_are_treated_alike() -> None:
    times = [datetime(2026, 3, 29, 2, 30), datetime(2026, 10, 25, 2, 30), datetime(2026, 7, 1)]
    column = pa.array(times, pa.timestamp("us"))
    for choice in ("", "second", "forward", "reject"):
        fmt = TextFormat(timezone="Europe/Berlin", clock_changes=choice)
        texts = pa.array([str(time) for time in times]).cast(pa.binary())
        cells, bad = encode_text("timestamp", texts, fmt, null_length=-1)
        refused = {one.row for one in bad}
        found = [
            encode_typed(CqlType("timestamp"), column, fmt, null_length=-1),
            encode_values(CqlType("timestamp"), times, fmt, null_length=-1),
        ]
        for other, faults in found:
            assert set(faults) == refused
            good = np.array([row not in refused for row in range(3)])
            assert other.filter(good).values.to_pylist() == cells.filter(good).values.to_pylist()


def test_repeated_times_are_counted_unless_one_was_chosen() -> None:
    def counted(choice: str) -> int:
        before = REPEATED.count
        zone = zone_named("Europe/Berlin")
        local = np.array([1_792_895_400_000, 1_792_895_400_000, 0], np.int64)  # 02:30 on 25 October
        moments_of(local, zone, choice)
        return REPEATED.count - before

    assert [counted(choice) for choice in ("", "first", "second", "reject")] == [2, 0, 0, 0]


def test_the_reason_names_the_option_of_the_command() -> None:
    fmt = TextFormat(timezone="Europe/Berlin")
    text = pa.array([SKIPPED]).cast(pa.binary())
    with spelled_as(JobKind.EXEC):
        bad = encode_text("timestamp", text, fmt, null_length=-1)[1]
    assert bad == [
        BadValue(
            0,
            f'cast timestamp: "{SKIPPED}" does not exist in Europe/Berlin, where clocks then go '
            "forward; --values-timezone names another zone, --values-clock-changes forward moves "
            "such times with the clocks",
        )
    ]
