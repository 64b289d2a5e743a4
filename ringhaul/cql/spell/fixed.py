"""Text columns whose values all have one width: laid out as numpy rows of characters."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Array = NDArray[Any]


def two_digits() -> Array:
    """`00` to `99`, two characters each, as one uint16."""
    return np.array([f"{i:02}".encode() for i in range(100)], "S2").view(np.uint16)


def four_digits() -> Array:
    """`0000` to `9999`, four characters each, as one uint32."""
    return np.array([f"{i:04}".encode() for i in range(10_000)], "S4").view(np.uint32)


def numbers_of(array: pa.Array, dtype: Any) -> Array:
    """The items of a fixed-width column; whatever the buffer holds where they are null."""
    width = np.dtype(dtype).itemsize
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype, len(array), array.offset * width)


def validity(array: pa.Array) -> pa.Buffer | None:
    """The validity bitmap of `array` from its first row on; None if it has no nulls."""
    if not array.null_count:
        return None
    return array.is_valid().buffers()[1]


def text_rows(rows: Array, like: pa.Array) -> pa.StringArray:
    """ASCII text from items of one width in bytes, null where `like` is. Nothing is copied."""
    width, count = rows.dtype.itemsize, len(rows)
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    data = pa.py_buffer(rows.view(np.uint8))
    return pa.StringArray.from_buffers(
        count, pa.py_buffer(offsets), data, validity(like), like.null_count
    )
