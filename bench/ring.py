"""Equal slices of the ring, for queries of one slice at a time."""

from __future__ import annotations

import itertools

TOKEN_MIN, TOKEN_MAX = -(2**63), 2**63 - 1


def ring_slices(count: int) -> list[tuple[int, int]]:
    """Return `count` token ranges (lo, hi] with every row once: no row has the least token."""
    cuts = [TOKEN_MIN + number * (2**64 // count) for number in range(count)]
    return list(itertools.pairwise([*cuts, TOKEN_MAX]))
