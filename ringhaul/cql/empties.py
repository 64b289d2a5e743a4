"""Empty values of types other than text: their spelling, and how to read them back. Pure.

On the wire an empty value differs from null: it is a cell of zero bytes, such as `blobAsInt(0x)`.
The server accepts it for the types below, as a column's value, in a key and inside nested values.
No number, time or address is spelt ``0x``, so this text unambiguously stands for it in CSV and
JSON.

Arrow has no empty numbers. So a column that holds an empty value has two forms: its own form, with
nulls, for computing; and a *marked* form for writing, in which all values of these types are text.
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

#: The spelling of an empty value.
EMPTY = "0x"
#: Types for which the server accepts an empty value (their serializers' `validate`).
EMPTIABLE = VECTOR_FIXED | {"decimal", "inet", "varint"}
#: Prefix that makes the name of a column's marked form.
MARKED = "\0marked "

_BLANK = b" \t\n\v\f\r"
Encode = Callable[[TextColumn, TextFormat], Encoded]


def taking_empties(encode: Encode) -> Encode:
    """Extend a type's encoder to also read `EMPTY`. Costs nothing unless a value is refused."""

    def run(column: TextColumn, fmt: TextFormat) -> Encoded:
        cells, bad = encode(column, fmt)
        if not bad:
            return Encoded(cells, bad)
        texts = column.array()
        empty = np.zeros(len(column), np.bool_)
        for row in {found.row for found in bad}:
            text = texts[row].as_buffer()
            # Long values are not copied: a bad one may have many MiB.
            if text.size < 64 and text.to_pybytes().strip(_BLANK) == EMPTY.encode():
                empty[row] = True
        if not empty.any():
            return Encoded(cells, bad)
        bad = [found for found in bad if not empty[found.row]]
        return Encoded(cells.filter(~empty).spread(~empty, 0), bad)

    return run


def marked_type(kind: CqlType) -> CqlType:
    """Return the type whose Arrow form is the marked form of `kind`."""
    if kind.name in EMPTIABLE:
        return CqlType("varchar")
    if kind.scalar or fixed_in_vector(kind):
        return kind
    return CqlType(kind.name, tuple(map(marked_type, kind.of)), kind.fields, kind.size)


def is_marked(kind: CqlType, array: pa.Array) -> bool:
    """Whether a column of the scalar `kind` is text instead of its own Arrow form."""
    text = pa.string()
    return bool(array.type == text and SCALARS[kind.name] != text)


def marked_column(batch: pa.RecordBatch, name: str) -> Any:
    """Return the marked form of a column, or the column itself if it holds no empty value."""
    at = batch.schema.get_field_index(MARKED + name)
    return batch.column(at if at >= 0 else batch.schema.get_field_index(name))


def rows_with_empty_elements(of: CqlType, lists: Cells) -> list[int]:
    """Return the rows whose list, of a scalar type, has an empty element."""
    if of.name not in EMPTIABLE:
        return []
    # An empty element has four zeros in a row; so may a count or a value, hence the exact check.
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
