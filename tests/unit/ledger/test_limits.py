"""Limits of errors as users write them."""

import pytest

from ringhaul.errors import UsageError
from ringhaul.ledger.limits import ErrorLimit


@pytest.mark.parametrize(
    ("text", "records_max", "per_million_max"),
    [
        ("1000", 1000, -1),
        ("0", 0, -1),
        ("-1", -1, -1),
        (" 5% ", -1, 50_000),
        ("0.5 %", -1, 5_000),
        ("0.0001%", -1, 1),
        ("100%", -1, 1_000_000),
    ],
)
def test_parse(text: str, records_max: int, per_million_max: int) -> None:
    assert ErrorLimit.parse(text) == ErrorLimit(
        records_max=records_max, per_million_max=per_million_max
    )


@pytest.mark.parametrize("text", ["", "many", "-2", "101%", "1e3", "5%%", "0.00001%", "%", "1,000"])
def test_parse_says_what_it_wants(text: str) -> None:
    with pytest.raises(UsageError, match="number of records such as 1000"):
        ErrorLimit.parse(text)


@pytest.mark.parametrize(
    ("limit", "rejected", "seen", "exceeded"),
    [
        ("10", 10, 10, False),
        ("10", 11, 11, True),
        ("0", 1, 1, True),
        ("-1", 10**9, 10**9, False),
        ("5%", 999, 999, False),  # too few seen for a share to mean anything
        ("5%", 50, 1000, False),
        ("5%", 51, 1000, True),
    ],
)
def test_exceeded(limit: str, rejected: int, seen: int, exceeded: bool) -> None:
    assert ErrorLimit.parse(limit).exceeded(rejected=rejected, seen=seen) is exceeded
