"""Cells of collections, tuples, user-defined types and vectors, joined from the cells of elements.

All elements of a column are consecutive in one `Cells`, so that a row's elements are a run of bytes
in it: joining only computes offsets, and touches no byte per row. On the wire:

| type | value |
|---|---|
| list, set | int32 count, then for each element its int32 length and its bytes |
| map | int32 count, then for each entry length and bytes of key and value |
| tuple, user-defined type | for each field its length (-1: null) and its bytes |
| vector | the elements' bytes alone if they all have one width by their type, else each after its length as an unsigned vint |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.cql.cells import Cells, fixed_binary, join_rows
from ringhaul.cql.types import CqlType
from ringhaul.cql.vints import unsigned_vints

#: Types whose elements are written in a vector without their lengths. Other types have lengths,
#: although most have one width, because the server's types declare themselves so.
VECTOR_FIXED = frozenset(
    ("bigint", "boolean", "double", "float", "int", "timestamp", "timeuuid", "uuid")
)

Counts = NDArray[np.int64]


class Fault(NamedTuple):
    """Why a value cannot be converted to its type, and which part of it is at fault."""

    path: str  #: such as `[3].name`; empty: the value itself
    cql_type: str  #: type of the part at fault
    reason: str  #: such as '"x" is not a whole number'

    def words(self, name: str) -> str:
        """Return the reason for a reject, for a value of the column `name`."""
        at = f"{name}{self.path}: " if self.path else ""
        return f"cast {self.cql_type}: {at}{self.reason}"

    def within(self, outer: str) -> Fault:
        """Return the fault with its path seen from the value that holds it at `outer`."""
        return self._replace(path=outer + self.path)


#: Row -> the fault of its value.
Faults = dict[int, Fault]


class Column(NamedTuple):
    """Cells of a column, arbitrary at the rows of `faults`."""

    cells: Cells
    faults: Faults


def faults_of(bad: Sequence[tuple[int, str]], cql_type: str) -> Faults:
    """Return the `BadValue`s of a scalar encoder as faults."""
    prefix = f"cast {cql_type}: "
    return {row: Fault("", cql_type, reason.removeprefix(prefix)) for row, reason in bad}


def fixed_in_vector(kind: CqlType) -> bool:
    """Whether elements of this type are written in a vector without their lengths."""
    return fixed_in_vector(kind.of[0]) if kind.name == "vector" else kind.name in VECTOR_FIXED


def collection_cells(columns: Sequence[Cells], counts: Counts) -> Cells:
    """Join lists or sets (one column of elements) or maps (keys, values); row i has `counts[i]`."""
    bodies = _rows(join_rows(columns), counts)
    heads = fixed_binary(counts.astype(">i4"))
    return Cells.variable(pc.binary_join_element_wise(heads, bodies, pa.scalar(b"", pa.binary())))


def fields_cells(columns: Sequence[Cells]) -> Cells:
    """Join tuples or user-defined types from one column per field."""
    return Cells.variable(join_rows(columns))


def vector_cells(kind: CqlType, elements: Cells, rows_count: int) -> Cells:
    """Join vectors of the type `kind`; row i has the elements from `i * kind.size` on."""
    counts = np.full(rows_count, kind.size, np.int64)
    values = elements.values
    if not fixed_in_vector(kind.of[0]):
        heads = unsigned_vints(np.maximum(elements.lengths, 0))
        values = pc.binary_join_element_wise(heads, values, pa.scalar(b"", pa.binary()))
    return Cells.variable(_rows(values, counts))


def lift(
    faults: Faults,
    counts: Counts,
    path_of: Callable[[int, int], str] = lambda _, place: f"[{place}]",
) -> Faults:
    """Turn faults of elements into faults of their rows, the first fault of each row.

    `path_of(element, place)`: the path of an element, from its number and its place in its row.
    """
    if not faults:
        return {}
    ends = np.cumsum(counts)
    elements = np.fromiter(faults, np.int64, len(faults))
    elements.sort()
    rows, firsts = np.unique(np.searchsorted(ends, elements, side="right"), return_index=True)
    return {
        row: faults[element].within(path_of(element, element - begin))
        for row, element, begin in zip(
            *(rows.tolist(), elements[firsts].tolist(), (ends - counts)[rows].tolist()), strict=True
        )
    }


def null_faults(cells: Cells, kind: CqlType, what: str) -> Faults:
    """Return faults of the null elements, for containers in which Cassandra allows none."""
    if cells.fixed_values is not None:
        return {}
    reason = f"null is not allowed in {what}"
    # All rows share one fault: a list may hold nothing but millions of nulls.
    faults = dict.fromkeys(np.flatnonzero(cells.lengths < 0).tolist(), Fault("", kind.name, reason))
    if what == "a vector" and fixed_in_vector(kind):
        # Without lengths, an empty value cannot be represented.
        reason = f"an empty value is not allowed in a vector of {kind.name}"
        empty = np.flatnonzero(cells.lengths == 0).tolist()
        faults |= dict.fromkeys(empty, Fault("", kind.name, reason))
    return faults


def _rows(values: pa.BinaryArray, counts: Counts) -> pa.BinaryArray:
    """Join each run of values to one value, by leaving out the offsets between them."""
    ends = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    _, offsets_buffer, data = values.buffers()
    offsets: NDArray[Any] = np.zeros(1, np.int32)
    if offsets_buffer is not None and len(values):
        offsets = np.frombuffer(offsets_buffer, np.int32)[values.offset :]
    kept = pa.py_buffer(offsets[ends])
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(counts), [None, kept, data or pa.py_buffer(b"")]
    )
