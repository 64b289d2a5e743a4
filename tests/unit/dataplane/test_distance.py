"""The estimate of a server's distance: what corrects it, and when it is in doubt."""

from __future__ import annotations

import pytest

from ringhaul.dataplane.distance import (
    CONFIRM_S,
    DISTANCE_MAX_S,
    DOUBT_FIRST_S,
    DOUBT_MAX_S,
    NEAR_S,
    Distance,
)


def test_it_is_the_lowest_round_trip() -> None:
    distance = Distance()
    assert distance.seconds == 0.0
    assert not distance.in_doubt(1e9), "nothing is known"
    for took_s in (0.3, 0.2, 0.9):
        distance.saw(took_s, 0.0)
    assert distance.seconds == 0.2


def test_it_is_in_doubt_after_a_while_without_a_round_trip_near_it() -> None:
    distance = Distance()
    distance.saw(0.02, 0.0)
    distance.saw(0.02 + CONFIRM_S, 5.0)
    for now_s in (6.0, 5.0 + DOUBT_FIRST_S):
        distance.saw(0.2, now_s)
        assert not distance.in_doubt(now_s)
    assert distance.in_doubt(5.1 + DOUBT_FIRST_S)
    # When it was measured, then that counts, also if it is longer
    distance.measured(0.2, 20.0)
    assert distance.seconds == 0.2
    assert not distance.in_doubt(20.0 + DOUBT_FIRST_S)


def test_an_estimate_that_proves_right_is_measured_more_and_more_rarely() -> None:
    distance, now_s, pauses = Distance(), 0.0, []
    distance.saw(0.001, now_s)
    for _ in range(8):
        pause_s = next(s for s in range(1000) if distance.in_doubt(now_s + s))
        pauses.append(pause_s)
        now_s += pause_s
        distance.measured(0.002, now_s)
    assert pauses[:3] == [11, 21, 41]
    assert pauses[-1] == DOUBT_MAX_S + 1
    # And from a quick answer on it is as at the beginning
    distance.saw(0.001, now_s)
    assert distance.in_doubt(now_s + DOUBT_FIRST_S + 1)


def test_a_measurement_that_fails_is_repeated_later() -> None:
    distance = Distance()
    distance.saw(0.02, 0.0)
    distance.not_measured(20.0)
    assert distance.seconds == 0.02
    assert not distance.in_doubt(20.0 + DOUBT_FIRST_S)
    assert distance.in_doubt(20.1 + DOUBT_FIRST_S)


def test_a_server_that_takes_long_is_not_far() -> None:
    distance = Distance()
    distance.saw(30.0, 0.0)
    assert distance.seconds == DISTANCE_MAX_S


@pytest.mark.parametrize(("seconds", "reach"), [(0.0, 100), (NEAR_S, 200), (0.2, 2100)])
def test_more_requests_reach_a_far_server(seconds: float, reach: int) -> None:
    distance = Distance()
    distance.saw(seconds, 0.0)
    assert distance.reach(100) == reach
