"""Empty fields: null for every type for which the empty text is not a value. Pure.

Programs that quote each field write `""` for a null number or date, and fixed widths leave blanks.
For texts and blobs an empty field is a value, unless the reader found it to be null.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.join import Faults
from ringhaul.cql.types import CqlType

#: Types with a value that is spelt as the empty text.
TEXTS = frozenset(("ascii", "text", "varchar", "blob"))
_BLANK = " \t\n\v\f\r"
#: Longer values are left alone: copying a bad value of many MiB would cost more than it helps.
_LENGTH_MAX = 256


def without_empties(kind: CqlType, values: Any) -> Any:
    """Return fields of CSV with null for each empty field, if the type has no such value."""
    if kind.name in TEXTS or not isinstance(values, pa.BinaryArray) or not len(values):
        return values
    # Runs for each column of each block, so on the offsets alone: a null has no bytes, either.
    offsets = np.frombuffer(values.buffers()[1], np.int32)
    offsets = offsets[values.offset : values.offset + len(values) + 1]
    empty = offsets[1:] == offsets[:-1]
    if int(np.count_nonzero(empty)) == values.null_count:
        return values
    return _with_nulls(values, empty)


def without_blanks(kind: CqlType, values: Any, faults: Faults) -> Any | None:
    """Return the values with null for each faulty text of only blanks; None: there is no such text.

    `values`: a column in any form that an encoder takes.
    """
    if kind.name in TEXTS:
        return None
    blank = [row for row in faults if _is_blank(values[row])]
    if not blank:
        return None
    if isinstance(values, list):
        values = list(values)
        for row in blank:
            values[row] = None
        return values
    among = np.zeros(len(values), np.bool_)
    among[blank] = True
    return _with_nulls(values, among)


def _is_blank(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip(_BLANK)
    if not isinstance(value, (pa.BinaryScalar, pa.StringScalar, pa.LargeStringScalar)):
        return False
    text = value.as_buffer()
    if text is None or text.size > _LENGTH_MAX:
        return False
    return not text.to_pybytes().strip(_BLANK.encode())


def _with_nulls(values: pa.Array, empty: npt.NDArray[np.bool_]) -> pa.Array:
    return pc.if_else(pa.array(empty), pa.scalar(None, values.type), values)
