"""Numbers of fixed width, and booleans, from numbers of any width: converted exactly, or refused.

Only conversion to a narrower float rounds, once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringhaul.cql.cells import Cells
from ringhaul.cql.join import Column
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.typed.faults import value_faults
from ringhaul.cql.types import CqlType

_WIRE = {
    "tinyint": ">i1", "smallint": ">i2", "int": ">i4", "bigint": ">i8",
    "float": ">f4", "double": ">f8",
}  # fmt: skip
#: Whole numbers up to this size are exact as a float or double.
EXACT_MAX = {"float": 2**24, "double": 2**53}


def encode_integers(kind: CqlType, array: Any, _: TextFormat) -> Column:
    """Encode integers of any width; an integer outside the range of `kind` is refused."""
    values, wire = array.to_numpy(), np.dtype(_WIRE[kind.name])
    if np.can_cast(values.dtype, wire):
        return Column(Cells.fixed(values.astype(wire)), {})
    low, high = int(np.iinfo(wire).min), int(np.iinfo(wire).max)
    bad = (values < low) | (values > high)
    faults = value_faults(kind, array, bad, f"is outside {low}..{high}")
    return Column(Cells.fixed(values.astype(wire)), faults)


def integers_of_floats(kind: CqlType, array: Any, _: TextFormat) -> Column:
    """Encode floats as integers; a float with a fraction is refused."""
    values = array.to_numpy().astype(np.float64)
    wire = np.dtype(_WIRE[kind.name])
    low, high = int(np.iinfo(wire).min), int(np.iinfo(wire).max)
    # high + 1 is a power of two, which is exact as a float; high itself may not be.
    outside = ~((values >= low) & (values < high + 1))
    broken = ~outside & (np.floor(values) != values)
    faults = value_faults(kind, array, outside, f"is outside {low}..{high}")
    faults |= value_faults(kind, array, broken, "is not a whole number")
    whole = np.where(outside | broken, 0.0, values)
    return Column(Cells.fixed(whole.astype(np.int64).astype(wire)), faults)


def encode_floats(kind: CqlType, array: Any, _: TextFormat) -> Column:
    """Encode floats of any width; infinities stay, but a finite value may not become infinite."""
    values = array.to_numpy()
    with np.errstate(over="ignore"):
        wire = values.astype(_WIRE[kind.name])
    too_large = np.isinf(wire) & np.isfinite(values)
    return Column(
        Cells.fixed(wire),
        value_faults(kind, array, too_large, f"is outside the range of a {kind.name}"),
    )


def floats_of_integers(kind: CqlType, array: Any, _: TextFormat) -> Column:
    """Encode integers as floats; an integer beyond `EXACT_MAX` is refused."""
    values, most = array.to_numpy(), EXACT_MAX[kind.name]
    inexact = (values > most) | (values < -most)
    faults = value_faults(kind, array, inexact, f"may not be exact as a {kind.name}")
    return Column(Cells.fixed(values.astype(_WIRE[kind.name])), faults)


def encode_booleans(_: CqlType, array: Any, __: TextFormat) -> Column:
    """Encode booleans as one byte each."""
    return Column(Cells.fixed(array.to_numpy(zero_copy_only=False).astype(np.uint8)), {})
