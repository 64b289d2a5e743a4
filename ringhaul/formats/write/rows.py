"""Join columns of text into rows of text."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_KERNELS = "ringhaul.formats.write.row_kernels"
#: Loading the kernels takes as long as they save in some millions of rows, so a command that prints
#: the result of a query does without. A process that writes many rows loads them before.
_WORTH_LOADING_ROWS = 1_000_000
#: Handing a column to a kernel takes as long as it saves in this many rows.
_WORTH_CALLING_ROWS = 300
#: The largest offset of a text column.
_BYTES_MAX = 2**31 - 1


def rows_of(
    columns: Sequence[pa.StringArray], before: Sequence[str], after: str, null: str
) -> pa.StringArray:
    """Return one text per row: each value after its text in `before`, and at the end `after`.

    `null` stands for null values. All rows together must take less than 2 GiB.
    """
    worth = _WORTH_CALLING_ROWS if _KERNELS in sys.modules else _WORTH_LOADING_ROWS
    put = by_kernels if len(columns[0]) >= worth else by_arrow
    return put(columns, before, after, null)


def by_arrow(
    columns: Sequence[pa.StringArray], before: Sequence[str], after: str, null: str
) -> pa.StringArray:
    """Join rows as `rows_of` does, with Arrow's function."""
    pieces = [piece for pair in zip(before, columns, strict=True) for piece in pair]
    return pc.binary_join_element_wise(
        *pieces, after, "", null_handling="replace", null_replacement=null
    )


def by_kernels(
    columns: Sequence[pa.StringArray], before: Sequence[str], after: str, null: str
) -> pa.StringArray:
    """Join rows as `rows_of` does, with the compiled kernel."""
    from ringhaul.formats.write.row_kernels import put_column

    heads = [_bytes(text.encode()) for text in before]
    tails = [_bytes(b"")] * (len(columns) - 1) + [_bytes(after.encode())]
    values = [
        _values(column.fill_null(null) if column.null_count else column) for column in columns
    ]
    ends = np.zeros(len(columns[0]) + 1, np.int64)
    ends[1:] = sum(map(len, heads)) + len(tails[-1])
    for offsets, _ in values:
        ends[1:] += np.diff(offsets)
    np.cumsum(ends, out=ends)
    if ends[-1] > _BYTES_MAX:
        raise ValueError(f"rows of {ends[-1]} bytes at once")
    out = np.empty(ends[-1], np.uint8)
    places = ends[:-1].copy()
    for head, (offsets, data), tail in zip(heads, values, tails, strict=True):
        put_column(head, data, offsets, tail, places, out)
    return pa.StringArray.from_buffers(
        len(places), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(out)
    )


def _values(column: pa.StringArray) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return where the values begin and end, and their bytes."""
    _, offsets, data = column.buffers()
    if not len(column):
        return np.zeros(1, np.int32), _bytes(b"")
    firsts = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return firsts, _bytes(b"" if data is None else data)


def _bytes(data: bytes | pa.Buffer) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)
