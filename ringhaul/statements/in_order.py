"""Rows of responses, numbered by the keys or values that they answer, and put in order. Pure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Rows(NamedTuple):
    """Rows of responses; row i answers the key, or the row of values, number `numbers[i]`."""

    numbers: Ints
    batch: pa.RecordBatch

    def take(self, order: Ints) -> Rows:
        """Return some of the rows, in the order of `order`."""
        return Rows(self.numbers[order], self.batch.take(pa.array(order)))


class InOrder:
    """Holds rows back until all rows with lower numbers have arrived."""

    def __init__(self) -> None:
        self._held: list[Rows] = []

    def add(self, rows: Rows) -> None:
        if len(rows.numbers):
            self._held.append(rows)

    def up_to(self, end: int) -> Rows | None:
        """Return the rows with numbers below `end`, if all have arrived. Pages keep their order."""
        if not self._held:
            return None
        numbers = np.concatenate([rows.numbers for rows in self._held])
        batch = pa.concat_batches([rows.batch for rows in self._held])
        all_rows = Rows(numbers, batch)
        ready = np.flatnonzero(numbers < end)
        if not len(ready):
            return None
        self._held = []
        if len(ready) < len(numbers):
            self._held = [all_rows.take(np.flatnonzero(numbers >= end))]
        order = ready[np.argsort(numbers[ready], kind="stable")]
        if len(order) == len(numbers) and (np.diff(order) == 1).all():
            return all_rows
        return all_rows.take(order)


class Blocks:
    """Tracks which of the requested blocks of numbers are done."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []
        self._left: list[int] = []

    def add(self, first: int, end: int, count: int) -> None:
        """Add a block that has `count` of the numbers first..end-1. Blocks are added in order."""
        self._firsts.append(first)
        self._ends.append(end)
        self._left.append(count)

    def settle(self, numbers: Ints) -> int | None:
        """Mark numbers as done; return the end of the leading finished blocks, if it moved."""
        if len(numbers):
            blocks = np.searchsorted(self._firsts, numbers, side="right") - 1
            for block, count in enumerate(np.bincount(blocks).tolist()):
                self._left[block] -= count
        done = 0
        while done < len(self._left) and not self._left[done]:
            done += 1
        if not done:
            return None
        end = self._ends[done - 1]
        del self._firsts[:done], self._ends[:done], self._left[:done]
        return end
