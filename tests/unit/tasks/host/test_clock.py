"""Differences of clocks as intervals, and the kernel's own word."""

from __future__ import annotations

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.host.clock import Offset, Reading, combine, now_ms, synchronised

MS = st.floats(-1e6, 1e6)


@given(true_ms=MS, delays=st.lists(st.tuples(st.floats(0, 5e3), st.floats(0, 5e3)), min_size=1))
def test_the_true_difference_is_always_in_the_interval(
    true_ms: float, delays: list[tuple[float, float]]
) -> None:
    """Whatever the ways take, and however unequal they are."""
    sent_at = 1e9
    readings = [
        Reading(sent_at, sent_at + there + back, float(int(sent_at + there + true_ms)), 1.0)
        for there, back in delays
    ]
    known = combine(reading.offset for reading in readings)
    assert known is not None
    assert known.low_ms - 1e-3 <= true_ms <= known.high_ms + 1e-3
    assert known.width_ms <= min(there + back for there, back in delays) + 1.001


def test_several_readings_give_the_narrowest_interval() -> None:
    assert combine([Offset(-5, 5), Offset(-1, 8), Offset(-9, 2)]) == Offset(-1, 2)
    assert combine([]) is None
    # The clock was set in between: both are possible.
    assert combine([Offset(0, 1), Offset(100, 101)]) == Offset(0, 101)


@given(a=MS, b=MS, width=st.floats(0, 1e3))
def test_differences_add_up(a: float, b: float, width: float) -> None:
    one, other = Offset(a, a + width), Offset(b, b + width)
    difference = one.minus(other)
    assert difference.low_ms <= a - b <= difference.high_ms
    total = one.plus(other)
    assert total.low_ms <= a + b <= total.high_ms


@pytest.mark.parametrize(
    ("offset", "surely"),
    [(Offset(-3, 4), 0), (Offset(2, 9), 2), (Offset(-9, -2), 2), (Offset(0, 0), 0)],
)
def test_only_what_is_beyond_doubt_counts(offset: Offset, surely: float) -> None:
    assert offset.surely_ms == surely


def test_the_clock_is_in_ms_since_the_epoch() -> None:
    assert abs(now_ms() - time.time() * 1000) < 1000


def test_the_kernel_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert synchronised() in (True, False, None)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert synchronised() is None
