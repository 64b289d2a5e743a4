"""Whole numbers, floating point and booleans as text: by Arrow's own formatters.

The sign of a NaN and the bits of its payload have no text.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def spell_integers(array: pa.Array) -> pa.StringArray:
    return array.cast(pa.string())


def spell_booleans(array: pa.BooleanArray) -> pa.StringArray:
    """`true` or `false`."""
    return array.cast(pa.string())


def spell_floats(array: pa.Array) -> pa.StringArray:
    """The shortest text that reads back as the same float32 or float64; `NaN`, `Infinity`."""
    text = array.cast(pa.string())
    if not np.isfinite(array.fill_null(0.0).to_numpy()).all():
        text = pc.if_else(pc.is_nan(array), "NaN", text)
        text = pc.if_else(pc.equal(array, np.inf), "Infinity", text)
        text = pc.if_else(pc.equal(array, -np.inf), "-Infinity", text)
    return text
