"""The condition of a load: select rows with the engine that filters rows of reads.

A condition is about what the table would hold: the cells of its columns are assembled into a page
of rows, as a server sends it, and decoded like one. Pure.
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
from ringhaul.cql.result_codes import KIND_ROWS, NO_METADATA
from ringhaul.errors import UsageError
from ringhaul.option_names import job_option
from ringhaul.query.where import Where, parse_where

#: A list, set or map of this many bytes holds only its count of elements, which is 0.
_NO_ELEMENTS_BYTES = 4


def record_condition(text: str, table: TableSchema, columns: Sequence[str]) -> Where:
    """Return a condition that can be applied to records that are loaded into `columns`.

    Raises `QueryError` as for rows of the table, and `UsageError`.
    """
    where = parse_where(text, table)
    computed = [fetch for fetch in where.fetches if not fetch.is_column]
    if where.tokens is not None or computed:
        what = computed[0].name if computed else "token()"
        raise UsageError(
            f"{job_option('where')}: {what} is known only for rows of the table, not for records"
        )
    for fetch in where.fetches:
        if fetch.name not in columns:
            raise UsageError(
                f"{job_option('where')}: {fetch.label} cannot be used, because nothing is loaded "
                "into it"
            )
    return where


class Condition:
    """A condition on some of the columns that are loaded."""

    def __init__(self, text: str, table: TableSchema, columns: Sequence[str]) -> None:
        """`columns`: the loaded columns, in order. Raises as `record_condition` does."""
        where = record_condition(text, table, columns)
        self._predicate = where.predicate
        #: Places in `columns` of the columns that the condition is about.
        self.places = [list(columns).index(fetch.name) for fetch in where.fetches]
        #: By place: whether a value without elements is null, as for the server.
        self._many = [_is_many(table, fetch.name) for fetch in where.fetches]
        self._decoder = PageDecoder(
            [fetch.name for fetch in where.fetches], [fetch.type for fetch in where.fetches]
        )

    def holds(self, cells: Sequence[Cells], rows_count: int) -> npt.NDArray[np.bool_]:
        """Return for each row whether the condition is true. `cells`: good cells at `places`."""
        if self._predicate is None:
            return np.ones(rows_count, np.bool_)
        found = self._predicate.evaluate(self._batch(cells, rows_count))
        mask: npt.NDArray[np.bool_] = pc.fill_null(found, False).to_numpy(zero_copy_only=False)
        return mask

    def _batch(self, cells: Sequence[Cells], rows_count: int) -> pa.RecordBatch:
        if not cells:  # a condition without columns, true or false for all rows
            nothing = pa.struct([])
            return pa.RecordBatch.from_struct_array(pa.array([{}] * rows_count, nothing))
        head = struct.pack(">iiii", KIND_ROWS, NO_METADATA, len(cells), rows_count)
        rows = join_rows(list(map(_with_nulls, cells, self._many)))
        _, offsets, data = rows.buffers()
        # All values together are one run of bytes.
        ends = memoryview(offsets).cast("i")
        first, end = ends[rows.offset], ends[rows.offset + rows_count]
        return self._decoder.decode(head + memoryview(data)[first:end])


def _is_many(table: TableSchema, name: str) -> bool:
    """Return whether a column stores a cell for each element of its value."""
    kind = table.parsed_type(name).name
    return kind in ("list", "set", "map") and not table.type_of(name).startswith("frozen<")


def _with_nulls(cells: Cells, many: bool) -> Cells:
    """Turn unset cells into nulls: a page cannot say that a cell stays unchanged."""
    if cells.fixed_values is not None:
        return cells
    lengths, values = np.maximum(cells.lengths, NULL_LENGTH), cells.values
    if many and (empty := lengths == _NO_ELEMENTS_BYTES).any():
        lengths = np.where(empty, NULL_LENGTH, lengths)
        values = pc.if_else(pa.array(empty), pa.scalar(b"", pa.binary()), values)
    return Cells(None, lengths.astype(">i4"), values)
