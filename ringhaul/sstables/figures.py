"""The figures for Statistics.db, counted piece by piece."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringhaul.sstables.data import NULL, THERE
from ringhaul.sstables.layout import Layout
from ringhaul.sstables.statistics import (
    DropTimes,
    Minima,
    Statistics,
    cell_counts,
    size_counts,
)

Array = NDArray[Any]


class Figures:
    """The figures of one SSTable so far."""

    def __init__(self, layout: Layout, minima: Minima) -> None:
        self._layout, self._minima = layout, minima
        self._size_counts = size_counts(np.zeros(0, np.int64))
        self._cell_counts = cell_counts(np.zeros(0, np.int64))
        self._cells = self._rows = 0
        self._time_us_max: int | None = None
        self._ttl_s_min: int | None = None
        self._ttl_s_max = 0
        self._deletion_s_max = 0
        self._drop_times = DropTimes(layout.version.expiry_s_max)
        self._any_stays = False

    def add_partitions(self, partition_bytes: Array, partition_cells: Array, rows: int) -> None:
        """Add partitions with their bytes and cells. `rows`: number of rows, with static rows."""
        self._size_counts += size_counts(partition_bytes)
        self._cell_counts += cell_counts(partition_cells)
        self._cells += int(partition_cells.sum())
        self._rows += rows

    def add_times(
        self, times_us: Array, ttls_s: Array, missing: Array, kinds: Array, *, is_static: bool
    ) -> None:
        """Add the times of rows, at least one. `missing`, `kinds`: see `encode_data`.

        Rows and values count even if a later row of their key replaced them. A collection counts
        once, for the deletion of what was there, and not by its elements. A static row
        (`is_static`) does not expire itself, only its values do.
        """
        latest, shortest = int(times_us.max()), int(ttls_s.min())
        self._time_us_max = max(latest, latest if self._time_us_max is None else self._time_us_max)
        self._ttl_s_min = min(shortest, shortest if self._ttl_s_min is None else self._ttl_s_min)
        self._ttl_s_max = max(self._ttl_s_max, int(ttls_s.max()))
        self._any_stays = self._any_stays or shortest == 0
        if (missing[kinds == 0] == NULL).any():
            self._ttl_s_min = 0  # a deletion has no TTL
        there = (missing[kinds == 0] == THERE).sum(axis=0)
        deletions = int((missing[kinds != 0] == THERE).sum())  # what collections replace
        nulls = int((missing == NULL).sum()) + deletions
        expiring = ttls_s > 0
        if nulls or expiring.any():
            written_s = self._layout.written_s
            last_s = written_s + int(ttls_s.max())
            self._deletion_s_max = max(self._deletion_s_max, last_s)
            self._drop_times.add(
                np.append(written_s + ttls_s[expiring], [written_s] * bool(nulls)),
                np.append(there[expiring] + (not is_static), [nulls] * bool(nulls)),
            )

    def finish(
        self,
        *,
        ratio: float,
        clustering_min: list[bytes],
        clustering_max: list[bytes],
        first_key: bytes,
        last_key: bytes,
    ) -> Statistics:
        """Return the figures. `ratio`: see `Statistics.compression_ratio`."""
        return Statistics(
            size_counts=self._size_counts,
            cell_counts=self._cell_counts,
            cells=self._cells,
            rows=self._rows,
            minima=self._minima,
            time_us_max=self._time_us_max or 0,
            deletion_s_max=self._deletion_s_max,
            ttl_s_min=self._ttl_s_min or 0,
            ttl_s_max=self._ttl_s_max,
            drop_times=self._drop_times.grouped(),
            any_stays=self._any_stays,
            compression_ratio=ratio,
            clustering_min=clustering_min,
            clustering_max=clustering_max,
            first_key=first_key,
            last_key=last_key,
        )
