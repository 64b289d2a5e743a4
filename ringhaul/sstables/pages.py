"""Rows as pages: sorted by token, cut small, each an Arrow record batch that can be read alone.

A batch has a column for the keys, the write times and the TTLs. Each other column of the rows
becomes one column of values of a fixed width, or else two, of lengths and of bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.cql.cells import Cells
from ringhaul.cql.tokens import murmur3_tokens
from ringhaul.sstables.columns import Rows, bytes_of

#: Bytes of rows in a page. Reading a bucket decodes up to two pages of each run in vain.
PAGE_BYTES = 64 * 1024


class Page(NamedTuple):
    """Some rows in the order of their tokens."""

    first: int  #: token
    last: int  #: token
    rows_bytes: int  #: in memory, an average of its run
    data: pa.Buffer


class Shape(NamedTuple):
    """How to read the pages of one run."""

    schema: pa.Schema
    clustering: int  #: how many of the columns are clustering ones
    fixed: tuple[bool, ...]  #: per column: whether it has values of one width


def paged(rows: Rows, page_bytes: int = PAGE_BYTES) -> tuple[Shape, Iterator[Page]]:
    """Return rows as pages. Rows of one token stay in their order."""
    tokens = murmur3_tokens(rows.keys)
    order = np.argsort(tokens, kind="stable")
    tokens = tokens[order]
    cells = [*rows.clustering, *rows.columns]
    shape, batch = _batch(rows, cells, order)
    total_bytes = bytes_of(rows)
    count = max(1, len(rows) * page_bytes // max(1, total_bytes))
    return shape, _pages(batch, tokens, count, total_bytes / max(1, len(rows)))


def _batch(
    rows: Rows, cells: list[Cells], order: NDArray[np.int64]
) -> tuple[Shape, pa.RecordBatch]:
    places = pa.array(order)
    arrays = [rows.keys.take(places), pa.array(rows.times_us[order]), pa.array(rows.ttls_s[order])]
    fixed = []
    for column in cells:
        values = column.fixed_values
        fixed.append(values is not None)
        if values is None:
            arrays += [pa.array(column.lengths[order].astype(np.int32)), column.values.take(places)]
            continue
        width = values.dtype.itemsize
        data = pa.py_buffer(np.ascontiguousarray(values[order]).view(np.uint8))
        arrays.append(
            pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(rows), [None, data])
        )
    batch = pa.RecordBatch.from_arrays(arrays, [str(place) for place in range(len(arrays))])
    return Shape(batch.schema, len(rows.clustering), tuple(fixed)), batch


def _pages(
    batch: pa.RecordBatch, tokens: NDArray[np.int64], count: int, row_bytes: float
) -> Iterator[Page]:
    for start in range(0, len(tokens), count):
        page = batch.slice(start, count)
        last = start + len(page) - 1
        yield Page(
            int(tokens[start]), int(tokens[last]), int(row_bytes * len(page)), page.serialize()
        )


def read_page(data: bytes, shape: Shape, above: int, to: int) -> Rows:
    """Return the rows of a page with tokens above one and up to another."""
    batch = pa.ipc.read_record_batch(pa.py_buffer(data), shape.schema)
    tokens = murmur3_tokens(batch.column(0))
    start, end = np.searchsorted(tokens, np.array([above, to], np.int64), side="right").tolist()
    batch = batch.slice(start, end - start)
    columns = iter(batch.columns)
    keys, times, ttls = next(columns), next(columns), next(columns)
    cells = [
        _fixed(next(columns)) if fixed else _variable(next(columns), next(columns))
        for fixed in shape.fixed
    ]
    return Rows(
        keys=keys,
        clustering=cells[: shape.clustering],
        columns=cells[shape.clustering :],
        times_us=times.to_numpy(),
        ttls_s=ttls.to_numpy(),
    )


def _fixed(values: pa.FixedSizeBinaryArray) -> Cells:
    width = values.type.byte_width
    data = np.frombuffer(values.buffers()[1], np.uint8)
    start = values.offset * width
    return Cells.fixed(data[start : start + len(values) * width].reshape(-1, width))


def _variable(lengths: pa.Array, values: pa.BinaryArray) -> Cells:
    return Cells(None, lengths.to_numpy().astype(">i4"), values)
