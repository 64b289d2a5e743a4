"""Spellings of durations: those that the server accepts, and those that it does not."""

import pytest

from ringhaul.cql.durations import Duration, parse_duration
from tests.cases import each

HOUR, MINUTE, SECOND = 3_600_000_000_000, 60_000_000_000, 1_000_000_000


@each(
    ("text", "expected"),
    [
        ("1y2mo3w4d5h6m7s8ms9us10ns", (14, 25, 5 * HOUR + 6 * MINUTE + 7 * SECOND + 8_009_010)),
        ("1Y2MO3W4D5H6M7S8MS9US10NS", (14, 25, 5 * HOUR + 6 * MINUTE + 7 * SECOND + 8_009_010)),
        ("9\N{MICRO SIGN}s", (0, 0, 9000)),
        ("5m", (0, 0, 5 * MINUTE)),
        ("5mo", (5, 0, 0)),
        ("5ms", (0, 0, 5_000_000)),
        ("0s", (0, 0, 0)),
        ("-1d2h", (0, -1, -2 * HOUR)),
        ("P1Y2M3DT4H5M6S", (14, 3, 4 * HOUR + 5 * MINUTE + 6 * SECOND)),
        ("P2M", (2, 0, 0)),
        ("PT2M", (0, 0, 2 * MINUTE)),
        ("-PT0S", (0, 0, 0)),
        ("P3W", (0, 21, 0)),
        ("-P3W", (0, -21, 0)),
        ("P0001-02-03T04:05:06", (14, 3, 4 * HOUR + 5 * MINUTE + 6 * SECOND)),
        ("-P0000-00-01T00:00:00", (0, -1, 0)),
        ("2147483647mo", (2**31 - 1, 0, 0)),
        ("-2147483648mo2147483648d9223372036854775808ns", (-(2**31), -(2**31), -(2**63))),
    ],
)
def test_forms(text: str, expected: Duration) -> None:
    assert parse_duration(text) == expected


@each(
    "text",
    [
        *(
            "",
            "-",
            "P",
            "PT",
            "-P",
            "1",
            "1x",
            "y",
            "1d 2h",
            "1d1mo",
            "1d1d",
            "+1d",
            "--1d",
            "1.5s",
        ),
        *("P1D2M", "P1W1D", "PT1.5S", "P1-02-03T04:05:06", "\N{ARABIC-INDIC DIGIT ONE}d"),
    ],
)
def test_invalid_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    "text",
    [
        *("2147483648mo", "-2147483649d", "178956971y", "9223372036854775808ns", "P400000000W"),
        "9" * 10_000 + "d",
    ],
)
def test_durations_out_of_range_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="has more than"):
        parse_duration(text)
