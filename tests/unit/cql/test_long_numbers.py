"""Integers of thousands of digits, from text and back."""

from __future__ import annotations

import pytest

from ringhaul.cql import long_numbers
from ringhaul.cql.long_numbers import digits_of, integer_of, product


def test_long_numbers_equal_those_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    for bits in (1, 2000, 2001, 8 * 128, 8 * 129, 40_001, 800_000):
        value = (1 << bits) - bits
        assert integer_of(digits_of(value)) == value
        assert integer_of(digits_of(-value)) == -value
        if bits < 10_000:
            assert digits_of(value) == str(value)
    left, right = (1 << 400_001) - 3, 7**200_000
    assert product(left, right) == left * right
    monkeypatch.setattr(long_numbers, "_TRANSFORM_BYTES_MAX", 1 << 16)
    assert product(left, right) == left * right  # in halves
