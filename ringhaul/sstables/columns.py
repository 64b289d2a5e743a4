"""Rows of CQL cells, collected block by block, as the arrays that the kernels take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.cql.cells import Cells
from ringhaul.cql.column import TextColumn
from ringhaul.sstables.layout import Column

Array = NDArray[Any]

#: Codes of `Pool.missing`, as in `data.py`, which is not imported here: it costs numba's start.
_UNSET, _NULL = 1, 2


class Rows(NamedTuple):
    """Rows of one SSTable in any order; lists have one `Cells` per column."""

    keys: pa.BinaryArray  #: partition keys as the partitioner hashes them
    clustering: list[Cells]
    columns: list[Cells]
    times_us: NDArray[np.int64]
    ttls_s: NDArray[np.int64]  #: 0: the row does not expire

    def __len__(self) -> int:
        return len(self.times_us)


class Pool(NamedTuple):
    """The values of several columns in one array.

    Value r of column c is `data[bases[c] + offsets[c, r]:bases[c] + offsets[c, r + 1]]`.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int32]  #: (columns, rows + 1)
    bases: NDArray[np.int64]
    prefixed: NDArray[np.uint8]  #: per column: 1 if values have a length before them
    missing: NDArray[np.uint8]  #: (columns, rows): 0 there, 1 unset, 2 null


def joined(parts: Sequence[Rows]) -> Rows:
    """Return several blocks of rows as one."""
    if len(parts) == 1:
        return parts[0]
    return Rows(
        keys=pa.concat_arrays([part.keys for part in parts]),
        clustering=_joined_columns([part.clustering for part in parts]),
        columns=_joined_columns([part.columns for part in parts]),
        times_us=np.concatenate([part.times_us for part in parts]),
        ttls_s=np.concatenate([part.ttls_s for part in parts]),
    )


def _joined_columns(parts: Sequence[list[Cells]]) -> list[Cells]:
    return [_joined_cells([part[place] for part in parts]) for place in range(len(parts[0]))]


def _joined_cells(parts: Sequence[Cells]) -> Cells:
    fixed = [part.fixed_values for part in parts]
    plain = [values for values in fixed if values is not None]
    widths = {values.dtype.itemsize for values in plain}
    if len(plain) == len(parts) and len(widths) == 1:
        # As bytes: numpy would swap big-endian numbers to this machine's byte order.
        (width,) = widths
        rows = [np.ascontiguousarray(v).view(np.uint8).reshape(-1, width) for v in plain]
        return Cells.fixed(np.concatenate(rows))
    return Cells(
        None,
        np.concatenate([part.lengths for part in parts]),
        pa.concat_arrays([part.values for part in parts]),
    )


def plain(values: pa.BinaryArray) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Return a copy of the bytes of values, and their offsets, which begin at 0."""
    column = TextColumn.of(values)
    return np.array(column.data), np.array(column.offsets, np.int32)


def pool_of(cells: Sequence[Cells], columns: Sequence[Column], order: Array) -> Pool:
    """Return the values of the rows of `order`, in that order."""
    rows = len(order)
    offsets = np.zeros((len(cells), rows + 1), np.int32)
    missing = np.zeros((len(cells), rows), np.uint8)
    bases = np.zeros(len(cells), np.int64)
    sizes = [_taken_bytes(column, order) for column in cells]
    # Filled column by column, so that no second copy of all values is in memory.
    pool = np.empty(sum(sizes), np.uint8)
    base = 0
    places = pa.array(order)
    for place, (column, size) in enumerate(zip(cells, sizes, strict=True)):
        fixed = column.fixed_values
        if fixed is not None:
            data = fixed[order].view(np.uint8).reshape(-1)
            offsets[place] = np.arange(0, len(data) + 1, fixed.dtype.itemsize, dtype=np.int32)
        else:
            values = TextColumn.of(column.values.take(places))
            data, offsets[place] = values.data, values.offsets
            lengths = column.lengths[order]
            missing[place] = np.where(lengths == -2, _UNSET, np.where(lengths < 0, _NULL, 0))
        bases[place] = base
        pool[base : base + size] = data
        base += size
    return Pool(
        data=pool,
        offsets=offsets,
        bases=bases,
        prefixed=np.array([column.width == 0 for column in columns], np.uint8),
        missing=missing,
    )


def _taken_bytes(cells: Cells, order: Array) -> int:
    """Return the bytes of the values of the rows of `order`."""
    fixed = cells.fixed_values
    if fixed is not None:
        return len(order) * int(fixed.dtype.itemsize)
    return int(np.maximum(cells.lengths, 0)[order].sum(dtype=np.int64))


def filtered(rows: Rows, kept: NDArray[np.bool_]) -> Rows:
    """Return the rows where `kept` is true."""
    if kept.all():
        return rows
    return Rows(
        keys=rows.keys.filter(pa.array(kept)),
        clustering=[cells.filter(kept) for cells in rows.clustering],
        columns=[cells.filter(kept) for cells in rows.columns],
        times_us=rows.times_us[kept],
        ttls_s=rows.ttls_s[kept],
    )


def bytes_of(rows: Rows) -> int:
    """Return the bytes that rows take in memory."""
    cells = sum(_cell_bytes(cells) for cells in (*rows.clustering, *rows.columns))
    return int(rows.keys.nbytes) + 16 * len(rows) + cells


def _cell_bytes(cells: Cells) -> int:
    fixed = cells.fixed_values
    if fixed is not None:
        return int(fixed.nbytes)
    return int(cells.values.nbytes) + 4 * len(cells)
