"""Counts, sizes, rates and durations formatted for people."""

import pytest

from producer.text import bytes_text, count_text, ms_text, rate_text, time_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (5 << 20, "5.0 MiB"),
        (12_025_908_429, "11.2 GiB"),
        (3 << 40, "3.0 TiB"),
        (5000 << 40, "5000.0 TiB"),
    ],
)
def test_bytes(count: float, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0, "0"), (812.4, "812"), (9_999, "9,999"), (241_300, "241k"), (1_234_567, "1,235k")],
)
def test_rates(rate: float, text: str) -> None:
    assert rate_text(rate) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0, "0:00"),
        (59.4, "0:59"),
        (59.6, "1:00"),
        (171, "2:51"),
        (3599.7, "1:00:00"),
        (3771, "1:02:51"),
        (360_000, "100:00:00"),
    ],
)
def test_times(seconds: float | None, text: str) -> None:
    assert time_text(seconds) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"), [(None, "-"), (0.45, "0.5 ms"), (9.94, "9.9 ms"), (38.2, "38 ms")]
)
def test_milliseconds(milliseconds: float | None, text: str) -> None:
    assert ms_text(milliseconds) == text


def test_counts() -> None:
    assert [count_text(n, "file") for n in (0, 1, 2, 31_250)] == [
        "0 files",
        "1 file",
        "2 files",
        "31,250 files",
    ]
