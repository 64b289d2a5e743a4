"""How many rows of a job's LIMIT a unit may still take. Pure.

A LIMIT that several units share is handed out by the ledger: a unit reserves rows once it has read
them, and before it writes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ringhaul.errors import Transient


class Share(NamedTuple):
    """What a unit has of a LIMIT."""

    rows: int  #: rows that it may have in all
    left: int  #: rows that no unit has yet


#: Takes how many rows a unit has or wants in all, and returns its share. The share is the unit's,
#: whichever attempt asks, and never shrinks.
Reserve = Callable[[int], Share]


class ShareLost(Transient):
    """The ledger forgot rows that the unit had reserved, and other units have them now."""


def reserve_alone(limit: int) -> Reserve:
    """Return what hands out a LIMIT to the only unit."""

    def reserve(rows: int) -> Share:
        share = min(rows, limit)
        return Share(share, limit - share)

    return reserve


class RowLimit:
    """The LIMIT of a job, seen from one attempt of a unit."""

    def __init__(self, reserve: Reserve | None) -> None:
        """`reserve`: None for a job without LIMIT."""
        self._reserve = reserve
        self._end: int | None = None  # rows of the unit with which it ends, once that is known

    def allow(self, taken: int, wanted: int = 0) -> int:
        """Return how many of `wanted` rows may be taken by the unit, which has `taken`.

        Raises `ShareLost`, and what the ledger raises for an attempt that must stop.
        """
        if self._reserve is None:
            return wanted
        share = self._reserve(taken + wanted)
        if share.rows < taken:
            raise ShareLost(
                f"Redis forgot that {taken - share.rows:,} rows of the LIMIT belong to this unit, "
                "and others have them now"
            )
        self._end = None if share.left else share.rows
        return min(wanted, share.rows - taken)

    def is_reached(self, taken: int) -> bool:
        """Return whether the unit, which has `taken` rows, gets no more."""
        return self._end is not None and taken >= self._end
