"""How much a unit may send at once, and how it waits."""

from __future__ import annotations

import pytest

from ringhaul.dataplane import pacing
from ringhaul.dataplane.pacing import FREE, UNTHROTTLED, Leave, Pacing, free
from tests.throttles import Limited


class Stop(Exception):
    """Raised by a tick to stop the unit."""


def test_without_limits_nothing_is_held_back() -> None:
    paced = Pacing(UNTHROTTLED, lambda: None)
    paced.pay(10**9, 10**12)
    assert paced.leave() == FREE == free()


def test_rows_at_once_are_bounded_by_rows_and_by_bytes() -> None:
    throttle = Limited(rows_at_once=100, bytes_at_once=5000, requests_max=7)
    paced = Pacing(throttle, lambda: None)
    assert paced.leave() == Leave(100, 7)
    paced.pay(10, 4000)  # rows of 400 bytes: twelve fit
    assert paced.leave() == Leave(12, 7)
    paced.pay(1, 10_000)  # one row that is too large goes alone
    assert paced.leave() == Leave(1, 7)
    paced.pay(0, 10_000)  # without rows: the mean row size stays unknown
    assert paced.leave() == Leave(1, 7)
    assert (throttle.rows, throttle.bytes) == (11, 24_000)


def test_only_requests_are_limited() -> None:
    throttle = Limited(requests_max=3, paced=False)
    assert Pacing(throttle, lambda: None).leave() == Leave(pacing.BOUNDLESS, 3)


def test_a_wait_ticks_and_ends_when_the_limits_change() -> None:
    throttle = Limited(first_wait_s=60.0)
    ticks = []

    def tick() -> None:
        ticks.append(1)
        throttle.due_s = 0.0

    Pacing(throttle, tick).pay(1, 1)
    assert len(ticks) == 1


def test_a_wait_is_reported_to_the_timer_of_the_unit() -> None:
    throttle = Limited(first_wait_s=0.4)
    Pacing(throttle, lambda: None).pay(1, 1)
    assert 0.35 < throttle.waited_s < 5


def test_bytes_are_spent_in_parts_that_may_go_at_once() -> None:
    throttle = Limited(bytes_at_once=5000)
    paced = Pacing(throttle, lambda: None)
    assert [paced.spend(12_000), paced.spend(300)] == [5000, 300]
    assert throttle.paid == [(0, 5000), (0, 300)]
    assert Pacing(UNTHROTTLED, lambda: None).spend(12_000) == 12_000


def test_a_wait_can_be_stopped() -> None:
    def tick() -> None:
        raise Stop

    with pytest.raises(Stop):
        Pacing(Limited(first_wait_s=60.0), tick).pay(1, 1)
