"""Error limits as users write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config import values
from ringhaul.errors import UsageError
from ringhaul.ledger import limits
from ringhaul.ledger.limits import ErrorLimit
from tests.cases import each

#: Too many digits, too many decimals, too large a share, and digits
#: that a Lua script does not take for digits.
REFUSED = ["", "many", "-2", "101%", "1e3", "5%%", "%", "1,000", "1 000", "5.%", ".5%", "1.5"]
REFUSED += ["1" + 15 * "0", "0.12345%", "100.00000%", "100.0001%", "005%", "\u0663", "\u0663%"]


@each(
    ("text", "records_max", "per_million_max"),
    [
        ("1000", 1000, -1),
        ("0", 0, -1),
        ("-1", -1, -1),
        (" 5% ", -1, 50_000),
        ("0.5 %", -1, 5_000),
        ("0.0001%", -1, 1),
        ("100%", -1, 1_000_000),
        ("100.0000%", -1, 1_000_000),
        ("99.9999%", -1, 999_999),
        ("9" * 15, 10**15 - 1, -1),
    ],
)
def test_parse(text: str, records_max: int, per_million_max: int) -> None:
    assert ErrorLimit.parse(text) == ErrorLimit(
        records_max=records_max, per_million_max=per_million_max
    )
    assert ErrorLimit.parse(values.parse_max_errors(text)) == ErrorLimit.parse(text)


@each("text", REFUSED)
def test_a_refusal_says_what_is_expected(text: str) -> None:
    with pytest.raises(UsageError, match=r"number of records such as 1000.*15 digits, four dec"):
        ErrorLimit.parse(text)
    # And so does the setting, before it gets here.
    with pytest.raises(ValueError, match=r"number of records such as 1000.*15 digits, four dec"):
        values.parse_max_errors(text)


def test_the_setting_has_the_pattern_of_the_ledger() -> None:
    """Two packages that may not import each other have the same pattern."""
    assert values.MAX_ERRORS.pattern == limits.MAX_ERRORS.pattern


@given(st.text("0123456789.%- ", max_size=18) | st.from_regex(values.MAX_ERRORS))
def test_the_ledger_accepts_all_that_the_setting_accepts(text: str) -> None:
    try:
        values.parse_max_errors(text)
    except ValueError:
        with pytest.raises(UsageError):
            ErrorLimit.parse(text)
    else:
        limit = ErrorLimit.parse(text)
        assert -1 <= limit.per_million_max <= 1_000_000
        assert limit.records_max == -1 or limit.per_million_max == -1


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
