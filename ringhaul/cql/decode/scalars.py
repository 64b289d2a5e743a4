"""Decode a column of cells of a scalar type to Arrow.

An empty cell is an empty value of text, ascii and blob. The other types have no empty values here:
an empty cell (the server stores such cells, a legacy from before CQL) becomes null, as in the
driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.cql.decode.cells import Int32s, Page
from ringhaul.cql.decode.gather import copy_cells, fill_offsets, gather_bytes, gather_words
from ringhaul.cql.decode.hostile_page import HostilePage, checked
from ringhaul.cql.decode.words import (
    TEXT_BYTES_MAX,
    address_texts,
    duration_parts,
    number_texts,
)
from ringhaul.cql.long_numbers import digits_of
from ringhaul.cql.types import DURATION, SCALARS

#: (page, starts, lengths) -> a column with a value for each cell. Raises `HostilePage`.
Decode = Callable[[Page, Int32s, Int32s], pa.Array]

_DAY_NS = 86_400 * 10**9
#: 1970-01-01 on the wire, where dates are unsigned.
_DATE_CENTRE = np.uint32(2**31)


def validity(present: NDArray[np.bool_]) -> pa.Buffer:
    """Return Arrow's validity bitmap."""
    return pa.py_buffer(np.packbits(present, bitorder="little"))


@dataclass(frozen=True)
class Fixed:
    """Decodes a type whose values all have `width` bytes; values of 16 bytes stay bytes."""

    name: str
    width: int

    def __call__(self, page: Page, starts: Int32s, lengths: Int32s) -> pa.Array:
        words: NDArray[Any]
        if self.width == 16:
            words = np.empty(len(starts) * 16, np.uint8)
            missing = gather_bytes(page, starts, lengths, 16, words)
        else:
            words = np.empty(len(starts), f"u{self.width}")
            missing = gather_words(page, starts, lengths, words)
        valid = validity(lengths > 0) if checked(missing, f"a {self.name}") else None
        return self._array(words, len(starts), valid)

    def side_by_side(self, page: Page, starts: Int32s, lengths: Int32s, count: int) -> pa.Array:
        """Decode cells that each hold `count` values; a null cell has zeros."""
        words = np.empty(len(starts) * count * self.width, np.uint8)
        found = gather_bytes(page, starts, lengths, count * self.width, words)
        checked(found, f"{count} {self.name} values")
        if self.width < 16:
            words = words.view(f">u{self.width}").astype(f"u{self.width}", copy=False)
        return self._array(words, len(starts) * count, None)

    def _array(self, words: NDArray[Any], count: int, valid: pa.Buffer | None) -> pa.Array:
        """Return `count` words as a column of this type; an invalid word is 0."""
        if self.name == "date":
            words ^= _DATE_CENTRE
        elif self.name == "boolean":
            words = np.packbits(words != 0, bitorder="little")
        elif self.name == "time" and (words >= _DAY_NS).any():
            raise HostilePage("a time is outside a day")
        buffers = [valid, pa.py_buffer(words)]
        return pa.Array.from_buffers(SCALARS[self.name], count, buffers)


def _texts(page: Page, starts: Int32s, lengths: Int32s) -> pa.StringArray:
    array, bits = _bytes(pa.string(), page, starts, lengths)
    if bits >= 0x80:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:
            raise HostilePage("a text is not UTF-8") from None
    return array


def _blobs(page: Page, starts: Int32s, lengths: Int32s) -> pa.BinaryArray:
    return _bytes(pa.binary(), page, starts, lengths)[0]


def _bytes(
    data_type: pa.DataType, page: Page, starts: Int32s, lengths: Int32s
) -> tuple[pa.Array, int]:
    """Return the cells' bytes as a column, and the bitwise or of all bytes."""
    offsets = np.empty(len(starts) + 1, np.int32)
    missing = fill_offsets(lengths, offsets)
    data = np.empty(offsets[-1], np.uint8)
    bits = copy_cells(page, starts, offsets, data)
    valid = validity(lengths >= 0) if missing else None
    return _variable(data_type, offsets, data, valid), bits


def _variable(
    data_type: pa.DataType, offsets: Int32s, data: Page, valid: pa.Buffer | None
) -> pa.Array:
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(data_type, len(offsets) - 1, buffers)


def _addresses(page: Page, starts: Int32s, lengths: Int32s) -> pa.StringArray:
    offsets = np.empty(len(starts) + 1, np.int32)
    places = np.empty(len(starts) * TEXT_BYTES_MAX, np.uint8)
    checked(address_texts(page, starts, lengths, offsets, places), "an inet")
    return _written(lengths, offsets, places)


def _written(lengths: Int32s, offsets: Int32s, places: Page) -> pa.StringArray:
    """Return the texts that a kernel has written, without the unused space."""
    present = lengths > 0
    valid = None if present.all() else validity(present)
    return _variable(pa.string(), offsets, places[: offsets[-1]].copy(), valid)


def _varints(page: Page, starts: Int32s, lengths: Int32s) -> pa.StringArray:
    return _numbers("varint", page, starts, lengths)


def _decimals(page: Page, starts: Int32s, lengths: Int32s) -> pa.StringArray:
    return _numbers("decimal", page, starts, lengths)


def _numbers(name: str, page: Page, starts: Int32s, lengths: Int32s) -> pa.StringArray:
    head = 4 if name == "decimal" else 0
    offsets = np.empty(len(starts) + 1, np.int32)
    places = np.empty(len(starts) * TEXT_BYTES_MAX, np.uint8)
    left = np.empty(len(starts), np.uint8)
    found = number_texts(page, starts, lengths, head, offsets, places, left)
    left_count = checked(found, f"a {name}")
    array = _written(lengths, offsets, places)
    if not left_count:
        return array
    texts = []
    for i in np.flatnonzero(left).tolist():
        cell = page[starts[i] : starts[i] + lengths[i]].tobytes()
        scale = int.from_bytes(cell[:head], "big", signed=True)
        texts.append(number_text(int.from_bytes(cell[head:], "big", signed=True), scale))
    return pc.replace_with_mask(array, pa.array(left.view(np.bool_)), pa.array(texts, pa.string()))


def number_text(unscaled: int, scale: int) -> str:
    """Return `unscaled` * 10 ** -`scale` as text, like `words.number_texts`, but of any size."""
    sign, digits = "-" * (unscaled < 0), digits_of(abs(unscaled))
    exponent = len(digits) - 1 - scale
    if scale == 0:
        return sign + digits
    if scale > 0 and exponent >= -6:
        digits = digits.rjust(scale + 1, "0")
        return f"{sign}{digits[:-scale]}.{digits[-scale:]}"
    point = "." if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{point}{digits[1:]}E{exponent:+d}"


def _durations(page: Page, starts: Int32s, lengths: Int32s) -> pa.StructArray:
    months = np.empty(len(starts), np.int32)
    days = np.empty(len(starts), np.int32)
    nanoseconds = np.empty(len(starts), np.int64)
    found = duration_parts(page, starts, lengths, months, days, nanoseconds)
    valid = validity(lengths > 0) if checked(found, "a duration") else None
    parts = [pa.array(part) for part in (months, days, nanoseconds)]
    return pa.Array.from_buffers(DURATION, len(starts), [valid], children=parts)


_FIXED_WIDTHS = {
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "bigint": 8,
    "counter": 8,
    "float": 4,
    "double": 8,
    "boolean": 1,
    "timestamp": 8,
    "date": 4,
    "time": 8,
    "uuid": 16,
    "timeuuid": 16,
}

#: Every scalar type that the wire can carry.
DECODERS: Mapping[str, Decode] = {
    **{name: Fixed(name, width) for name, width in _FIXED_WIDTHS.items()},
    "ascii": _texts,
    "text": _texts,
    "varchar": _texts,
    "blob": _blobs,
    "inet": _addresses,
    "varint": _varints,
    "decimal": _decimals,
    "duration": _durations,
}
