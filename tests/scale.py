"""How much the proofs of SSTables do: little in `make test`, all of it in `make sstables-full`."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

#: Set by `make sstables-full`.
FULL = os.environ.get("SSTABLES_FULL") == "1"
#: What a complete run draws; printed, so that it can be repeated. The short form never changes.
SEED = int(os.environ.get("SSTABLES_SEED") or (random.randrange(10**9) if FULL else 1))

T = TypeVar("T")


def scaled(short: int, full: int) -> int:
    """Return a number for the form that runs."""
    return full if FULL else short


def chosen(short: Sequence[T], full: Sequence[T]) -> Sequence[T]:
    """Return the cases of the form that runs."""
    return full if FULL else short


def drawn(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """Return so many examples of a strategy. They can be used together, which hypothesis's own
    examples cannot: what they need of a node costs little more for several."""
    found: list[T] = []

    @seed(SEED)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: T) -> None:
        found.append(example)

    collect()
    print(f"drawn with SSTABLES_SEED={SEED}")
    return found
