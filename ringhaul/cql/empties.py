"""Empty values of types other than text: how they are spelt, and read back. Pure.

For the wire an empty value is no null: it is a cell of no bytes, as `blobAsInt(0x)` makes one. The
server takes it for the types below, as a column's value, in a key and inside of nested values. No
number, time or address is spelt ``0x``, so that this text stands for it in CSV and in JSON, and
nothing else does.

Arrow has no empty number either. A column in which there is one has two forms, therefore: its own,
with nulls, for whoever computes; and a *marked* one for whoever writes it, in which all values of
these types are text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.cells import Cells
from ringhaul.cql.column import Encoded, TextColumn
from ringhaul.cql.join import VECTOR_FIXED, fixed_in_vector
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.types import SCALARS, CqlType

#: What an empty value is spelt like.
EMPTY = "0x"
#: Types of which the server takes an empty value (their serializers' `validate`).
EMPTIABLE = VECTOR_FIXED | {"decimal", "inet", "varint"}
#: In front of a column's name: that of its marked form.
MARKED = "\0marked "

_BLANK = b" \t\n\v\f\r"
Encode = Callable[[TextColumn, TextFormat], Encoded]


def taking_empties(encode: Encode) -> Encode:
    """The encoder of a type that also reads `EMPTY`. Costs nothing unless a value is refused."""

    def run(column: TextColumn, fmt: TextFormat) -> Encoded:
        cells, bad = encode(column, fmt)
        if not bad:
            return Encoded(cells, bad)
        texts = column.array()
        empty = np.zeros(len(column), np.bool_)
        for row in {found.row for found in bad}:
            text = texts[row].as_buffer()
            # Not every value at fault is copied: it may be one of many MiB.
            if text.size < 64 and text.to_pybytes().strip(_BLANK) == EMPTY.encode():
                empty[row] = True
        if not empty.any():
            return Encoded(cells, bad)
        bad = [found for found in bad if not empty[found.row]]
        return Encoded(cells.filter(~empty).spread(~empty, 0), bad)

    return run


def marked_type(kind: CqlType) -> CqlType:
    """The type whose Arrow form is the marked one of `kind`."""
    if kind.name in EMPTIABLE:
        return CqlType("varchar")
    if kind.scalar or fixed_in_vector(kind):
        return kind
    return CqlType(kind.name, tuple(map(marked_type, kind.of)), kind.fields, kind.size)


def is_marked(kind: CqlType, array: pa.Array) -> bool:
    """Whether a column of the scalar `kind` is text in place of its own Arrow form."""
    text = pa.string()
    return bool(array.type == text and SCALARS[kind.name] != text)


def marked_column(batch: pa.RecordBatch, name: str) -> Any:
    """The marked form of a column, or the column where it has no empty value."""
    at = batch.schema.get_field_index(MARKED + name)
    return batch.column(at if at >= 0 else batch.schema.get_field_index(name))


def rows_with_empty_elements(of: CqlType, lists: Cells) -> list[int]:
    """The rows whose list, of elements of a scalar type, has an empty one."""
    if of.name not in EMPTIABLE:
        return []
    # No cell has four zeros in a row unless a length, a count or a value has.
    zeros = pc.match_substring(lists.values, bytes(4)).to_numpy(zero_copy_only=False)
    return [row for row in np.flatnonzero(zeros).tolist() if _has_empty(lists.values[row].as_py())]


def _has_empty(cell: bytes) -> bool:
    at = 4
    while at < len(cell):
        length = int.from_bytes(cell[at : at + 4], "big", signed=True)
        if length == 0:
            return True
        at += 4 + max(length, 0)
    return False
