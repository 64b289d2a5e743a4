"""The ring in slices of one size, for what asks the server a slice at a time."""

from __future__ import annotations

import itertools

TOKEN_MIN, TOKEN_MAX = -(2**63), 2**63 - 1


def ring_slices(count: int) -> list[tuple[int, int]]:
    """`count` ranges of tokens (lo, hi] that hold every row once: no row has the least token."""
    cuts = [TOKEN_MIN + number * (2**64 // count) for number in range(count)]
    return list(itertools.pairwise([*cuts, TOKEN_MAX]))
