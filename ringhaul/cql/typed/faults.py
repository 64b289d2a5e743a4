"""Faults of values that are no text: which value it is, in words, and why it is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.column import Mask
from ringhaul.cql.join import Fault, Faults
from ringhaul.cql.moments import moment_text, numbers_of
from ringhaul.cql.types import CqlType


def value_faults(kind: CqlType, array: Any, bad: Mask, reason: str) -> Faults:
    """The same reason, behind the value, for each row of `bad`."""
    rows = np.flatnonzero(bad).tolist()
    if not rows:
        return {}
    # All of them at once: a block may hold nothing else, and a call of Arrow's costs 50 us.
    told = _told(array.take(pa.array(rows, pa.int64())))
    return {
        row: Fault("", kind.name, f"{words} {reason}")
        for row, words in zip(rows, told, strict=True)
    }


def _told(values: Any) -> list[str]:
    """Numbers and temporal values for messages."""
    arrow = values.type
    if pa.types.is_temporal(arrow):
        return [moment_text(arrow, number) for number in numbers_of(values).tolist()]
    texts: list[str] = pc.cast(values, pa.string()).to_pylist()
    return texts
