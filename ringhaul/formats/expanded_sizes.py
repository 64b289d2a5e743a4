"""Sizes of the rows of a batch after their shared values are expanded, row by row.

Arrow shares values: rows of a dictionary array refer to one of its values, views point into a
buffer of many. What is written to a table has each value in full. Everything here works by column.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Weights = npt.NDArray[np.int64]

#: Bytes that an Arrow list, string or binary takes beside its content: its offset.
OFFSET_BYTES = 4


def row_bytes(batch: pa.RecordBatch) -> Weights:
    """Return the bytes of each row with its values expanded."""
    total = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        total += value_bytes(column)
    return total


def value_bytes(array: Any) -> Weights:
    """Return the bytes of each value of an Arrow array, expanded."""
    arrow, count = array.type, len(array)
    if isinstance(arrow, pa.BaseExtensionType):
        return value_bytes(array.storage)
    if pa.types.is_dictionary(arrow):
        of_values = value_bytes(array.dictionary)
        if not len(of_values):
            return np.zeros(count, np.int64)
        at = pc.fill_null(array.indices, 0).to_numpy(zero_copy_only=False)
        found: Weights = of_values[at]
        return np.asarray(found * _valid(array), np.int64) if array.null_count else found
    if pa.types.is_struct(arrow):
        fields = [value_bytes(field) for field in array.flatten()]
        return sum(fields, np.zeros(count, np.int64))
    if pa.types.is_map(arrow):
        return _sums(value_bytes(array.keys) + value_bytes(array.items), array.offsets)
    if pa.types.is_fixed_size_list(arrow):
        # A null still has places for its elements; `flatten` would leave those out.
        inner = value_bytes(array.values.slice(array.offset * arrow.list_size))
        by_row = inner[: count * arrow.list_size].reshape(count, arrow.list_size)
        return np.asarray(by_row.sum(axis=1), np.int64)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        if (width := _fixed_width(arrow.value_type)) is not None:
            # Not element by element: there may be a thousand times as many as rows.
            return _lengths(array.offsets) * width + OFFSET_BYTES
        return _sums(value_bytes(array.values), array.offsets)
    if pa.types.is_null(arrow):
        return np.zeros(count, np.int64)
    if _is_view(arrow):
        # The first four of a view's 16 bytes are the length; they are arbitrary in a null.
        views = np.frombuffer(array.buffers()[1] or b"", np.int32).reshape(-1, 4)
        lengths = views[array.offset : array.offset + count, 0].astype(np.int64)
        return np.asarray(lengths * _valid(array) if array.null_count else lengths) + OFFSET_BYTES
    if _is_variable(arrow):
        lengths = pc.fill_null(pc.binary_length(array), 0)
        return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64) + OFFSET_BYTES
    return np.full(count, _width(arrow), np.int64)


def has_shared(arrow: pa.DataType) -> bool:
    """Return whether arrays of a type can take more bytes expanded than in memory now."""
    if isinstance(arrow, pa.BaseExtensionType):
        return has_shared(arrow.storage_type)
    if pa.types.is_dictionary(arrow) or _is_view(arrow):
        return True
    return any(has_shared(arrow.field(n).type) for n in range(arrow.num_fields))


def has_dictionary(arrow: pa.DataType) -> bool:
    """Return whether a type is a dictionary or holds one."""
    if isinstance(arrow, pa.BaseExtensionType):
        return has_dictionary(arrow.storage_type)
    if pa.types.is_dictionary(arrow):
        return True
    return any(has_dictionary(arrow.field(n).type) for n in range(arrow.num_fields))


def dictionaries(array: Any) -> Iterator[pa.DictionaryArray]:
    """Yield the dictionary arrays that an array is or contains."""
    arrow = array.type
    if isinstance(arrow, pa.BaseExtensionType):
        yield from dictionaries(array.storage)
    elif pa.types.is_dictionary(arrow):
        yield array
    elif pa.types.is_struct(arrow):
        for field in array.flatten():
            yield from dictionaries(field)
    elif pa.types.is_map(arrow):
        yield from dictionaries(array.keys)
        yield from dictionaries(array.items)
    elif arrow.num_fields:  # lists
        yield from dictionaries(array.values)


def longest_shared(array: Any) -> int:
    """Return the bytes of the longest value in any dictionary of an array; 0: no dictionary."""
    found = (value_bytes(each.dictionary).max(initial=0) for each in dictionaries(array))
    return int(max(found, default=0))


def places_count(array: Any) -> int:
    """Return how many values a column has at its most numerous level: for lists, elements."""
    arrow, count = array.type, len(array)
    if isinstance(arrow, pa.BaseExtensionType):
        return places_count(array.storage)
    if pa.types.is_struct(arrow):
        return max([count, *map(places_count, array.flatten())])
    if pa.types.is_map(arrow):
        return max(count, places_count(array.keys), places_count(array.items))
    return max(count, places_count(array.flatten())) if arrow.num_fields else count


def own_bytes(array: Any) -> int:
    """Return the bytes of an array without the dictionaries in it."""
    return int(array.nbytes) - sum(int(each.dictionary.nbytes) for each in dictionaries(array))


def _sums(inner: Weights, offsets: Any) -> Weights:
    """Return the sum of the elements of each list, plus its offset."""
    at = offsets.to_numpy().astype(np.int64)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(inner)])
    return np.asarray(np.diff(ends[at])) + OFFSET_BYTES


def _lengths(offsets: Any) -> Weights:
    return np.asarray(np.diff(offsets.to_numpy()), np.int64)


def _fixed_width(arrow: pa.DataType) -> int | None:
    """Return the bytes of each value of a type of fixed width; None: they vary."""
    return _width(arrow) if pa.types.is_primitive(arrow) else None


def _is_view(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(arrow) or pa.types.is_binary_view(arrow))


def _valid(array: Any) -> Any:
    return array.is_valid().to_numpy(zero_copy_only=False)


def _is_variable(arrow: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(arrow)
        or pa.types.is_large_string(arrow)
        or pa.types.is_binary(arrow)
        or pa.types.is_large_binary(arrow)
    )


def _width(arrow: pa.DataType) -> int:
    return max(1, int(arrow.bit_width) // 8)
