"""Ranges of values as parameters of a statement."""

from __future__ import annotations

import calendar
import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.errors import UsageError
from ringhaul.statements.parameter_ranges import parse_span, rows_between, rows_count
from tests.cases import each


def values(text: str) -> list[str]:
    span = parse_span(text)
    [column] = rows_between([span], 0, span.count)
    found: list[str] = column.to_pylist()
    return found


@each(
    ("text", "expected"),
    [
        ("n:0..3", ["0", "1", "2", "3"]),
        ("n:-2..1", ["-2", "-1", "0", "1"]),
        ("n:5..5", ["5"]),
        ("n:0..10/4", ["0", "4", "8"]),
        ("n:008..011", ["008", "009", "010", "011"]),
        ("bucket:2024..2026", ["2024", "2025", "2026"]),
        ("y:2020..2026/2y", ["2020", "2022", "2024", "2026"]),
        ("m:2023-11..2024-02", ["2023-11", "2023-12", "2024-01", "2024-02"]),
        ("m:2023-11..2024-05/3mo", ["2023-11", "2024-02", "2024-05"]),
        ("d:2024-02-28..2024-03-01", ["2024-02-28", "2024-02-29", "2024-03-01"]),
        ("d:2024-01-01..2024-01-20/1w", ["2024-01-01", "2024-01-08", "2024-01-15"]),
        (
            "d:2024-01-31..2024-04-30/1mo",
            ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"],
        ),
        ("d:2024-01-31..2024-04-29/1mo", ["2024-01-31", "2024-02-29", "2024-03-31"]),
        ("d:2024-02-29..2026-02-28/1y", ["2024-02-29", "2025-02-28", "2026-02-28"]),
        (
            "t:2024-01-31T10:00Z..2024-04-30T10:00Z/1mo",
            [f"2024-{day}T10:00Z" for day in ("01-31", "02-29", "03-31", "04-30")],
        ),
        (
            "t:2024-01-31T10:00:30..2024-04-30T10:00:29/1mo",
            [f"2024-{day}T10:00:30" for day in ("01-31", "02-29", "03-31")],
        ),
        ("h:2024-01-01T22..2024-01-02T01", [f"2024-01-0{d}T{h}" for d, h in
                                             ((1, 22), (1, 23), (2, "00"), (2, "01"))]),
        ("h:2024-01-01T00..2024-01-02T00/12h", ["2024-01-01T00", "2024-01-01T12", "2024-01-02T00"]),
        ("t:2024-01-01T00:00Z..2024-01-01T00:30Z/15m",
         ["2024-01-01T00:00Z", "2024-01-01T00:15Z", "2024-01-01T00:30Z"]),
        ("t:2024-01-01T00:00:00..2024-01-01T02:59:59",
         ["2024-01-01T00:00:00", "2024-01-01T01:00:00", "2024-01-01T02:00:00"]),
    ],
)  # fmt: skip
def test_values_of_a_range(text: str, expected: list[str]) -> None:
    assert values(text) == expected


@each(
    ("text", "words"),
    [
        ("n", "write NAME:FIRST..LAST"),
        ("n:1-5", "write NAME:FIRST..LAST"),
        (":1..5", "write NAME:FIRST..LAST"),
        ("n:5..1", "ends before it begins"),
        ("n:-07..07", "zeros after a sign are not kept"),
        ("n:1..x", "'x' is not a whole number"),
        ("n:a..b", "neither a whole number nor a date"),
        ("n:1..5/0", "invalid step '0'"),
        ("n:1..5/1q", "neither|no unit 'q'"),
        ("d:2024-01-01..2024-02", "'2024-02' is not written as '2024-01-01' is"),
        ("d:2024-13-01..2024-13-02", "cannot read the range"),
        ("d:2024-01-02..2024-01-01", "ends before it begins"),
        ("d:2024-01-31..2024-01-30/1mo", "ends before it begins"),
        ("d:2024-01-01..2024-01-02/1q", "no unit 'q'"),
        ("d:2024-01-01..2024-01-02/6h", "finer than the form of its values"),
        ("m:2024-01..2024-02/1d", "finer than the form of its values"),
        ("t:2024-01-01T00:00Z..2024-01-01T01:00", "not written as"),
        ("n:0..99999999999999999999", "out of range"),
    ],
)
def test_an_invalid_range_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_span(text)


def test_combinations_of_ranges_can_be_cut_anywhere() -> None:
    spans = [parse_span("d:2024-01-01..2024-01-03"), parse_span("n:0..1")]
    whole = [(d, n) for d in ("2024-01-01", "2024-01-02", "2024-01-03") for n in ("0", "1")]
    assert rows_count(spans) == 6
    for first in range(7):
        for last in range(first, 7):
            columns = rows_between(spans, first, last)
            rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
            assert rows == whole[first:last]


def test_too_many_values_are_refused_as_a_typo() -> None:
    with pytest.raises(UsageError, match="more than"):
        rows_count([parse_span("a:0..9999999"), parse_span("b:0..9999999")])


@given(st.dates(), st.integers(0, 3000), st.integers(1, 40))
def test_days_follow_the_calendar(first: datetime.date, more: int, step: int) -> None:
    try:
        last = first + datetime.timedelta(more)
    except OverflowError:
        last = datetime.date.max
    days = range(first.toordinal(), last.toordinal() + 1, step)
    expected = [datetime.date.fromordinal(day).isoformat() for day in days]
    assert values(f"day:{first.isoformat()}..{last.isoformat()}/{step}d") == expected


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y-%m-%dT%H", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%MZ"])
@given(
    first=st.datetimes(datetime.datetime(1000, 1, 1), datetime.datetime(8000, 1, 1)),
    more=st.integers(0, 400),
    late=st.integers(-3, 3),
    step=st.integers(1, 15),
    unit=st.sampled_from(["mo", "y"]),
)
def test_a_step_of_months_keeps_the_day_and_time_or_takes_the_last_day(
    form: str, first: datetime.datetime, more: int, late: int, step: int, unit: str
) -> None:
    first = datetime.datetime.strptime(first.strftime(form), form)
    last = max(first, _months_later(first, more) + datetime.timedelta(hours=late))
    last = datetime.datetime.strptime(last.strftime(form), form)
    months = step * (12 if unit == "y" else 1)
    expected, count = [], 0
    while (moment := _months_later(first, count * months)) <= last:
        expected.append(moment.strftime(form))
        count += 1
    found = values(f"at:{first.strftime(form)}..{last.strftime(form)}/{step}{unit}")
    assert found == expected


def _months_later(first: datetime.datetime, months: int) -> datetime.datetime:
    year, month = divmod(first.year * 12 + first.month - 1 + months, 12)
    days = calendar.monthrange(year, month + 1)[1]
    return first.replace(year=year, month=month + 1, day=min(first.day, days))
