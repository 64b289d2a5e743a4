"""Faults of values that are not text: the value as text, and why it is refused."""

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
    """Return a fault for each row of `bad`: its value, followed by `reason`."""
    rows = np.flatnonzero(bad).tolist()
    if not rows:
        return {}
    # All values at once: a block may hold only bad ones, and a call to Arrow costs 50 us.
    texts = _texts_of(array.take(pa.array(rows, pa.int64())))
    return {
        row: Fault("", kind.name, f"{text} {reason}") for row, text in zip(rows, texts, strict=True)
    }


def _texts_of(values: Any) -> list[str]:
    """Format numbers and temporal values for messages."""
    arrow = values.type
    if pa.types.is_temporal(arrow):
        return [moment_text(arrow, number) for number in numbers_of(values).tolist()]
    texts: list[str] = pc.cast(values, pa.string()).to_pylist()
    return texts
