"""Text columns whose values all have the same width, built as numpy rows of characters."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Array = NDArray[Any]


def two_digits() -> Array:
    """Return `00` to `99`, each with its two characters as one uint16."""
    return np.array([f"{i:02}".encode() for i in range(100)], "S2").view(np.uint16)


def four_digits() -> Array:
    """Return `0000` to `9999`, each with its four characters as one uint32."""
    return np.array([f"{i:04}".encode() for i in range(10_000)], "S4").view(np.uint32)


def numbers_of(array: pa.Array, dtype: Any) -> Array:
    """Return the items of a fixed-width column; null items are arbitrary."""
    width = np.dtype(dtype).itemsize
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype, len(array), array.offset * width)


def validity(array: pa.Array) -> pa.Buffer | None:
    """Return the validity bitmap of `array` from its first row on; None if it has no nulls."""
    if not array.null_count:
        return None
    return array.is_valid().buffers()[1]


def text_rows(rows: Array, like: pa.Array) -> pa.StringArray:
    """View items of one width as ASCII text, null where `like` is. Nothing is copied."""
    width, count = rows.dtype.itemsize, len(rows)
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    data = pa.py_buffer(rows.view(np.uint8))
    return pa.StringArray.from_buffers(
        count, pa.py_buffer(offsets), data, validity(like), like.null_count
    )
