"""Detect rows that are too large for a single request to write, as several writes made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ringhaul.cql.decode.cells import Int32s, Page

#: A server's default limit on a request and on a mutation, 16 MiB, less the overhead of a request.
ROW_BYTES_MAX = 16 * 2**20 - 128
#: Overhead of an element of an unfrozen list in a mutation, beyond the 4 bytes of its length here:
#: flags, a length, and its place in the list, which is a timeuuid.
_ELEMENT_BYTES = 16
#: A page below this size cannot hold a heavy row: the smallest element takes 5 bytes of a page.
_PAGE_BYTES_MIN = ROW_BYTES_MAX * 5 // (5 + _ELEMENT_BYTES)
#: The column that marks heavy rows, in batches that have any. No CQL column has this name.
HEAVY = "\0heavy"


def heavy_rows(
    page: Page, starts: Int32s, lengths: Int32s, appended: Sequence[int]
) -> NDArray[np.bool_] | None:
    """Return which rows take more than `ROW_BYTES_MAX`; None if no row does.

    Cells are indexed by column and row; `appended`: the columns that are unfrozen lists.
    """
    if page.size < _PAGE_BYTES_MIN:
        return None
    sizes = np.maximum(lengths, 0).sum(axis=0, dtype=np.int64) + 4 * len(lengths)
    for column in appended:
        # A cell of 4 bytes or more begins with the count of the list's elements.
        rows = np.flatnonzero(lengths[column] >= 4)
        at = starts[column][rows]
        counts = sum(page[at + place].astype(np.int64) << (24 - 8 * place) for place in range(4))
        sizes[rows] += counts * _ELEMENT_BYTES
    heavy = sizes > ROW_BYTES_MAX
    return heavy if heavy.any() else None


def with_heavy(batch: pa.RecordBatch, heavy: NDArray[np.bool_] | None) -> pa.RecordBatch:
    """Return the batch with the result of `heavy_rows` as an extra column, if any row is heavy."""
    return batch if heavy is None else batch.append_column(HEAVY, pa.array(heavy))
