"""The window on a simulated link: it fills the way to the server, and not the server's queue."""

from __future__ import annotations

import itertools

import pytest

from ringhaul.dataplane.window import FAST_S, LIMIT_FLOOR, SLOW_S
from tests.unit.dataplane.link import POLL_S, Link

#: From a new connection to the full rate.
START_S = 4.0
#: The longest queue if nothing is wrong: that which ends the growth, and one more step.
QUEUE_S = 2 * FAST_S + 2 * POLL_S


@pytest.mark.parametrize("one_way_s", [0.0, 0.001, 0.01, 0.1])
@pytest.mark.parametrize("rate", [5000, 20_000])
def test_it_uses_the_server_fully_without_a_long_queue(one_way_s: float, rate: float) -> None:
    link = Link(one_way_s, rate)
    link.run(START_S)
    used, queue_s = link.measure(3)
    assert used >= 0.95
    assert queue_s <= QUEUE_S


def test_a_far_server_is_in_full_use_within_seconds() -> None:
    link = Link(0.1, 20_000)
    # Doubling takes 200 ms each: 256, 512, ... 4096
    link.run(1.6)
    used, _ = link.measure(1)
    assert used >= 0.8


def test_a_client_that_is_busy_at_times_uses_the_server_fully() -> None:
    busy_s = itertools.cycle([0.0] * 20 + [0.04])
    link = Link(0.1, 10_000, busy_s=lambda: next(busy_s))
    link.run(START_S)
    used, queue_s = link.measure(3)
    assert used >= 0.95
    assert queue_s <= 2 * QUEUE_S


@pytest.mark.parametrize("one_way_s", [0.0, 0.1])
@pytest.mark.parametrize("share", [0.3, 0.7])
def test_it_takes_what_another_client_leaves(one_way_s: float, share: float) -> None:
    link = Link(one_way_s, 5000, others=share * 5000)
    link.run(3 * START_S)
    used, queue_s = link.measure(5)
    assert used >= 0.9
    assert queue_s <= 4 * FAST_S


def test_it_learns_that_the_route_became_longer() -> None:
    # Given a link in full use
    link = Link(0.01, 5000)
    link.run(START_S)
    # When the route becomes ten times as long, the answers look as if they waited in a queue
    link.one_way_s = 0.1
    link.run(1)
    used, _ = link.measure(2)
    assert used < 0.7
    # Then that is found out within seconds, and the link is in full use again
    link.run(12)
    used, queue_s = link.measure(3)
    assert used >= 0.95
    assert queue_s <= QUEUE_S


def test_it_learns_that_the_route_became_shorter() -> None:
    link = Link(0.1, 5000)
    link.run(START_S)
    link.one_way_s = 0.01
    link.run(2)
    used, queue_s = link.measure(3)
    assert used >= 0.95
    # What was on the way waits in the queue now.
    assert queue_s <= SLOW_S


@pytest.mark.parametrize("one_way_s", [0.0, 0.1])
def test_a_server_that_is_too_slow_gets_few_requests(one_way_s: float) -> None:
    link = Link(one_way_s, 50)
    link.run(20)
    used, _ = link.measure(4)
    assert used >= 0.95
    assert link.window.limit == LIMIT_FLOOR


@pytest.mark.parametrize("one_way_s", [0.0, 0.1])
def test_a_server_that_refuses_gets_less(one_way_s: float) -> None:
    # Given a server that refuses requests beyond 100 unanswered ones
    link = Link(one_way_s, 2000, refuses_over=100)
    link.run(6)
    # Then few are refused, and it always has something to do when it is near
    link.refused = 0
    used, _ = link.measure(4)
    assert link.refused <= 0.3 * link.answered
    assert used >= (0.95 if one_way_s == 0 else 0.2)


def test_the_queue_of_others_is_not_taken_for_distance() -> None:
    # Given a near server with a queue of others that stays long, for longer than the estimate of
    # the distance holds
    link = Link(0.0005, 5000, others=4990)
    link.run(60)
    # Then the distance is known as before, and the limit did not grow
    assert link.window.distance.seconds < 0.005
    assert link.window.limit <= 300
