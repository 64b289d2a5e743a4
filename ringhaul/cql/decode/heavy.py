"""Rows that a table holds and that no single request can write: several writes made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ringhaul.cql.decode.cells import Int32s, Page

#: What a server takes in one request, and in one mutation, unless it is set up otherwise: 16 MiB,
#: less what goes with the values.
ROW_BYTES_MAX = 16 * 2**20 - 128
#: What an element of a list that is not frozen takes in a mutation beside its value, but for the
#: 4 bytes that it takes here: flags, a length, and its place in the list, which is a timeuuid.
_ELEMENT_BYTES = 16
#: The smallest element takes 5 bytes of a page.
_PAGE_BYTES_MIN = ROW_BYTES_MAX * 5 // (5 + _ELEMENT_BYTES)
#: The column in which a batch has this, where a row of it is one. No column of CQL has this name.
HEAVY = "\0heavy"


def heavy_rows(
    page: Page, starts: Int32s, lengths: Int32s, appended: Sequence[int]
) -> NDArray[np.bool_] | None:
    """Which rows take more than `ROW_BYTES_MAX`; None: none of them.

    Cells are given by column and row; `appended`: the columns that are lists and not frozen.
    """
    if page.size < _PAGE_BYTES_MIN:
        return None
    sizes = np.maximum(lengths, 0).sum(axis=0, dtype=np.int64) + 4 * len(lengths)
    for column in appended:
        # Of some bytes that are the count of a list's elements.
        rows = np.flatnonzero(lengths[column] >= 4)
        at = starts[column][rows]
        counts = sum(page[at + place].astype(np.int64) << (24 - 8 * place) for place in range(4))
        sizes[rows] += counts * _ELEMENT_BYTES
    heavy = sizes > ROW_BYTES_MAX
    return heavy if heavy.any() else None


def with_heavy(batch: pa.RecordBatch, heavy: NDArray[np.bool_] | None) -> pa.RecordBatch:
    """The batch, and what `heavy_rows` found in it."""
    return batch if heavy is None else batch.append_column(HEAVY, pa.array(heavy))
