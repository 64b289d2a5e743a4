"""Whole numbers, floating point and booleans as text: by Arrow's own formatters, but for doubles
that have few decimals.

The sign of a NaN and the bits of its payload have no text.
"""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.spell.fixed import validity

_KERNELS = "ringhaul.cql.spell.doubles"
#: Loading the kernels takes a second, and they save 50 ns a value: a command that prints the result
#: of a query does not load them. A process that spells many has done so (`warm_up`).
_FEW_DOUBLES = 100_000


def spell_integers(array: pa.Array) -> pa.StringArray:
    return array.cast(pa.string())


def spell_booleans(array: pa.BooleanArray) -> pa.StringArray:
    """`true` or `false`."""
    return array.cast(pa.string())


def spell_floats(array: pa.Array) -> pa.StringArray:
    """The shortest text that reads back as the same float32 or float64; `NaN`, `Infinity`."""
    short = _short_doubles(array) if array.type == pa.float64() else None
    if short is not None:
        return short
    text = array.cast(pa.string())
    if not np.isfinite(array.fill_null(0.0).to_numpy()).all():
        text = pc.if_else(pc.is_nan(array), "NaN", text)
        text = pc.if_else(pc.equal(array, np.inf), "Infinity", text)
        text = pc.if_else(pc.equal(array, -np.inf), "-Infinity", text)
    return text


def _short_doubles(array: pa.DoubleArray) -> pa.StringArray | None:
    """The same text, of a column whose values all have few decimals; None: another one's."""
    if len(array) < _FEW_DOUBLES and _KERNELS not in sys.modules:
        return None
    from ringhaul.cql.spell.doubles import DOUBLE_BYTES_MAX, put_short_doubles

    values = array.fill_null(0.0).to_numpy()
    offsets = np.empty(len(values) + 1, np.int32)
    out = np.empty(len(values) * DOUBLE_BYTES_MAX, np.uint8)
    if put_short_doubles(values, offsets, out) < len(values):
        return None
    data = pa.py_buffer(out[: offsets[-1]].copy())
    return pa.StringArray.from_buffers(
        len(values), pa.py_buffer(offsets), data, validity(array), array.null_count
    )
