"""What the header of an SSTable says of all its rows, gathered as rows arrive."""

from __future__ import annotations

import numpy as np

from ringhaul.cql.cells import NULL_LENGTH, UNSET_LENGTH, Cells
from ringhaul.sstables.columns import Rows
from ringhaul.sstables.layout import Layout
from ringhaul.sstables.statistics import EPOCH_S, EPOCH_US, Minima


class Extent:
    """Which columns have values, and the minima of times."""

    def __init__(self, layout: Layout) -> None:
        self._is_collection = [bool(column.cells) for column in layout.columns]
        self._is_used = [False] * len(layout.columns)
        self._time_us: int | None = None
        self._ttl_s = 0  #: 0: no row expires
        self._has_nulls = False  # or collections that replace others
        self._some_stays = False  #: or some value is deleted, which does not expire either

    def add(self, rows: Rows) -> None:
        """Take in more rows."""
        for place, cells in enumerate(rows.columns):
            self._add_column(place, cells)
        if len(rows):
            # A collection deletes what was there, a microsecond before its own time.
            deletes = np.zeros(len(rows), np.bool_)
            for cells, is_collection in zip(rows.columns, self._is_collection, strict=True):
                if is_collection:
                    deletes |= cells.lengths != UNSET_LENGTH
            self._has_nulls = self._has_nulls or bool(deletes.any())
            first = int((rows.times_us - deletes).min())
            self._time_us = first if self._time_us is None else min(first, self._time_us)
        expiring = rows.ttls_s[rows.ttls_s > 0]
        self._some_stays = self._some_stays or len(expiring) < len(rows)
        if len(expiring):
            shortest = int(expiring.min())
            self._ttl_s = min(shortest, self._ttl_s or shortest)

    def _add_column(self, place: int, cells: Cells) -> None:
        if cells.fixed_values is not None:
            self._is_used[place] = True
            return
        if not self._is_used[place]:
            self._is_used[place] = bool((cells.lengths != UNSET_LENGTH).any())
        if not (self._has_nulls and self._some_stays):
            has_nulls = bool((cells.lengths == NULL_LENGTH).any())
            self._has_nulls = self._has_nulls or has_nulls
            if not self._is_collection[place]:
                self._some_stays = self._some_stays or has_nulls

    @property
    def used(self) -> list[int]:
        """The places of the columns that have values."""
        return np.flatnonzero(self._is_used).tolist()

    def minima(self, layout: Layout) -> Minima:
        """Return the minima of times."""
        deletions = [layout.written_s] if self._has_nulls else []
        if self._ttl_s:
            deletions.append(layout.written_s + self._ttl_s)
        return Minima(
            time_us=EPOCH_US if self._time_us is None else self._time_us,
            ttl_s=0 if self._some_stays else self._ttl_s,
            deletion_s=min(deletions) if deletions else EPOCH_S,
        )
