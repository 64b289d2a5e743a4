"""Pauses between tries."""

from __future__ import annotations

import random

from ringhaul.backoff import pause_s, spread


def test_a_pause_doubles_up_to_its_bound() -> None:
    pauses = [pause_s(tries, first_s=0.25, max_s=2) for tries in range(1, 7)]
    assert pauses == [0.25, 0.5, 1, 2, 2, 2]


def test_any_number_of_tries_has_a_pause() -> None:
    assert pause_s(0, first_s=1, max_s=9) == 1
    assert pause_s(10**9, first_s=1, max_s=9) == 9


def test_pauses_are_spread_by_half() -> None:
    spreads = [spread(4, random.Random(seed)) for seed in range(200)]
    assert 2 <= min(spreads) < 2.2
    assert 5.8 < max(spreads) <= 6
