"""Pauses between tries that grow exponentially."""

from __future__ import annotations

import random

#: Doublings that exceed every bound in use; more of them would overflow a float.
_DOUBLINGS_MAX = 64


def pause_s(tries: int, *, first_s: float, max_s: float) -> float:
    """Return the seconds to wait after `tries` failed tries: `first_s` after the first try, twice
    as long after each further try, `max_s` at most."""
    doublings = min(max(tries - 1, 0), _DOUBLINGS_MAX)
    return min(first_s * 2.0**doublings, max_s)


def spread(pause: float, source: random.Random | None = None) -> float:
    """Return a pause changed by up to 50 % at random, so that clients that failed at the same
    moment do not all come back at once. `source`: by default Python's own generator, which is
    seeded again after a fork."""
    return pause * (source.uniform if source else random.uniform)(0.5, 1.5)
