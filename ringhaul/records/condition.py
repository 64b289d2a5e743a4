"""`load --where`: which rows are loaded, told by the engine that tells it of rows that are read.

A condition is about what the table would hold: the cells of its columns are put together as a page
of rows, such as a server sends, and decoded like one. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cluster.schema import TableSchema
from ringhaul.cql.cells import NULL_LENGTH, Cells, join_rows
from ringhaul.cql.decode import PageDecoder
from ringhaul.errors import UsageError
from ringhaul.query.where import Where, parse_where

#: Of a result of rows without metadata (native protocol v4, section 4.2.5.2).
_ROWS_KIND, _NO_METADATA = 2, 4
#: A list, set or map of so many bytes is its count of elements alone, which is 0.
_NO_ELEMENTS_BYTES = 4


def record_condition(text: str, table: TableSchema, columns: Sequence[str]) -> Where:
    """A condition that can be held against records which are loaded into `columns`.

    Raises `QueryError` as for rows of the table, and `UsageError`.
    """
    where = parse_where(text, table)
    computed = [fetch for fetch in where.fetches if not fetch.is_column]
    if where.tokens is not None or computed:
        what = computed[0].name if computed else "token()"
        raise UsageError(f"--where: {what} is known of rows of the table, and not of records")
    for fetch in where.fetches:
        if fetch.name not in columns:
            raise UsageError(
                f"--where: nothing is loaded into {fetch.label}, by which records could be told"
            )
    return where


class Condition:
    """A condition over some of the columns that are loaded."""

    def __init__(self, text: str, table: TableSchema, columns: Sequence[str]) -> None:
        """`columns`: those that are loaded, in their order. Raises as `record_condition` does."""
        where = record_condition(text, table, columns)
        self._predicate = where.predicate
        #: Where in `columns` those stand that it is about.
        self.places = [list(columns).index(fetch.name) for fetch in where.fetches]
        #: Of which of these a value without elements is none, as it is to the server.
        self._many = [_is_many(table, fetch.name) for fetch in where.fetches]
        self._decoder = PageDecoder(
            [fetch.name for fetch in where.fetches], [fetch.type for fetch in where.fetches]
        )

    def holds(self, cells: Sequence[Cells], rows_count: int) -> npt.NDArray[np.bool_]:
        """For each row: is the condition true? `cells`: of the columns at `places`, none bad."""
        if self._predicate is None:
            return np.ones(rows_count, np.bool_)
        found = self._predicate.evaluate(self._batch(cells, rows_count))
        mask: npt.NDArray[np.bool_] = pc.fill_null(found, False).to_numpy(zero_copy_only=False)
        return mask

    def _batch(self, cells: Sequence[Cells], rows_count: int) -> pa.RecordBatch:
        if not cells:  # a condition that is the same for every row
            nothing = pa.struct([])
            return pa.RecordBatch.from_struct_array(pa.array([{}] * rows_count, nothing))
        head = struct.pack(">iiii", _ROWS_KIND, _NO_METADATA, len(cells), rows_count)
        rows = join_rows(list(map(_with_nulls, cells, self._many)))
        _, offsets, data = rows.buffers()
        # All values together are one run of bytes.
        ends = memoryview(offsets).cast("i")
        first, end = ends[rows.offset], ends[rows.offset + rows_count]
        return self._decoder.decode(head + memoryview(data)[first:end])


def _is_many(table: TableSchema, name: str) -> bool:
    """Whether a column's value is a cell for each of its elements."""
    kind = table.parsed_type(name).name
    return kind in ("list", "set", "map") and not table.type_of(name).startswith("frozen<")


def _with_nulls(cells: Cells, many: bool) -> Cells:
    """No row of a page says that a cell is to be left as it is: that is a null."""
    if cells.fixed_values is not None:
        return cells
    lengths, values = np.maximum(cells.lengths, NULL_LENGTH), cells.values
    if many and (empty := lengths == _NO_ELEMENTS_BYTES).any():
        lengths = np.where(empty, NULL_LENGTH, lengths)
        values = pc.if_else(pa.array(empty), pa.scalar(b"", pa.binary()), values)
    return Cells(None, lengths.astype(">i4"), values)
