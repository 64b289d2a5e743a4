"""Rows that go to the cluster as requests, or are compared with its rows. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ringhaul.destination.base import Destination, UnitBounds

#: Units that a job has at least for each worker process, so that none is idle for long at the end.
UNITS_PER_SLOT = 4
UNIT_BYTES_MAX = 64 << 20
UNIT_BYTES_PACED_MIN = 16 << 10


@dataclass(frozen=True, kw_only=True)
class Cql(Destination):
    """The table, by the native protocol."""

    name = "cql"

    def unit_bounds(self, *, transformed: bool) -> UnitBounds:
        return UnitBounds(UNITS_PER_SLOT, UNIT_BYTES_MAX, UNIT_BYTES_PACED_MIN)
