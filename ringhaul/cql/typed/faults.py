"""Faults of values that are no text: which value it is, in words, and why it is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.column import Mask
from ringhaul.cql.gluing import Fault, Faults
from ringhaul.cql.types import CqlType


def value_faults(kind: CqlType, array: Any, bad: Mask, reason: str) -> Faults:
    """The same reason, behind the value, for each row of `bad`."""
    return {
        int(row): Fault("", kind.name, f"{_told(array, int(row))} {reason}")
        for row in np.flatnonzero(bad)
    }


def _told(array: Any, row: int) -> str:
    """A value for a message; Python has no date for every one."""
    try:
        return str(pc.cast(array.slice(row, 1), pa.string())[0].as_py())
    except pa.ArrowException:
        return str(array[row])
