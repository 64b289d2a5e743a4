"""The five fields of cron: their meaning, and errors in them."""

from datetime import date, timedelta

import pytest
from celery.schedules import crontab_parser

from ringhaul.schedule.cron import Cron
from tests.cases import each

#: A Thursday.
FIRST = date(2026, 1, 1)


def days_of(text: str, year: int = 2026) -> list[date]:
    """The days of a year on which a cron expression is due."""
    cron = Cron.parse(text)
    all_days = (date(year, 1, 1) + timedelta(days=n) for n in range(366))
    return [day for day in all_days if day.year == year and cron.on(day)]


@pytest.mark.parametrize("text", ["*", "7", "*/7", "3-9", "10-40/15", "1,5,9-11", "0-59", "*/59"])
def test_a_field_is_read_as_celery_reads_it(text: str) -> None:
    cron = Cron.parse(f"{text} * * * *")
    assert set(cron.minutes) == crontab_parser(60).parse(text)


def test_the_fields_in_their_order() -> None:
    cron = Cron.parse(" 5 4   3 2 1 ")
    assert (cron.minutes, cron.hours) == ((5,), (4,))
    assert (cron.days, cron.months, cron.weekdays) == ({3}, {2}, {1})
    assert cron.text == "5 4 3 2 1"


@pytest.mark.parametrize("sunday", ["0", "7", "sun", "SUN", "7,0", "0-0"])
def test_sunday_has_two_numbers_and_a_name(sunday: str) -> None:
    found = days_of(f"0 0 * * {sunday}")
    assert found[0] == date(2026, 1, 4)
    assert {day.isoweekday() for day in found} == {7}
    assert len(found) == 52


def test_names_of_months_and_weekdays() -> None:
    assert days_of("0 0 * feb mon-wed")[:4] == [date(2026, 2, n) for n in (2, 3, 4, 9)]
    assert Cron.parse("0 0 1 jan-mar,dec *").months == {1, 2, 3, 12}


def test_days_of_month_and_week_either_or_both() -> None:
    # Both are restricted: either may match, as in cron(5)
    assert days_of("0 0 13 * fri")[:4] == [date(2026, 1, n) for n in (2, 9, 13, 16)]
    # One of them begins with a star: both must match
    assert days_of("0 0 13 * *")[:2] == [date(2026, 1, 13), date(2026, 2, 13)]
    odd_fridays = [day for day in days_of("0 0 */2 * fri") if day.month == 1]
    assert odd_fridays == [date(2026, 1, 9), date(2026, 1, 23)]


def test_the_29th_of_february_comes_in_leap_years() -> None:
    assert days_of("0 0 29 2 *", 2026) == []
    assert days_of("0 0 29 2 *", 2028) == [date(2028, 2, 29)]


@each(
    ("text", "message"),
    [
        ("* * * *", "expected five fields .* found 4"),
        ("@daily", "expected five fields"),
        ("60 * * * *", 'minute "60": expected \\*, or 0 to 59'),
        ("* 24 * * *", 'hour "24"'),
        ("* * 0 * *", 'day of month "0": .* 1 to 31'),
        ("* * * 13 *", 'month "13": .* 1 to 12 or jan to dec'),
        ("* * * * 8", 'day of week "8": .* 0 to 7 or sun to sat'),
        ("* * * * fry", 'day of week "fry"'),
        ("9-5 * * * *", 'minute "9-5": the range ends before it begins'),
        ("*/0 * * * *", "a step of at least 1"),
        ("5/10 * * * *", "a step needs \\* or a range"),
        ("1,,2 * * * *", 'minute ""'),
        ("-1 * * * *", 'minute "-1"'),
        ("1.5 * * * *", 'minute "1.5"'),
        ("0 0 30 2 *", "is never due"),
        ("0 0 31 4,6 *", "is never due"),
    ],
)
def test_an_error_names_its_field(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Cron.parse(text)
