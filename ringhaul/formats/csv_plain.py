"""Split a block without quotes, escapes or decoding into fields, at its delimiters alone.

A field is then the text between two delimiters, so the block itself, seen as a column of fields and
separators, needs no parser: a row of 1 kB takes half the time that pyarrow's parser takes. A block
with even one irregular record is left to that parser (`csv_read.py`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ringhaul.formats.dialect import BLANKS, CsvDialect
from ringhaul.formats.split import Block

_OFFSET_MAX = 2**31 - 1


def plain_columns(
    block: Block,
    dialect: CsvDialect,
    fields_count: int,
    indexes: Sequence[int],
    nulls_of: Sequence[Sequence[str]],
) -> list[pa.BinaryArray] | None:
    """Return the fields `indexes` of each record, null where they read as null.

    `nulls_of`: the null texts of each field.

    Returns None if a record has, or may have, another number of fields than `fields_count`.
    """
    data, rows_count = block.data, block.records_count
    if dialect.decoding == "block" or len(data) > _OFFSET_MAX or dialect.replaces_empty:
        return None
    if _holds_specials(data, dialect):
        return None
    view = np.frombuffer(data, np.uint8)
    delimiter = dialect.delimiter.encode()
    found = _places(view, delimiter)
    if found is None or len(found) != rows_count * (fields_count - 1):
        return None
    delimiters = found.reshape(rows_count, fields_count - 1)
    # Offsets of field, separator, field, separator ... of all records in one column.
    begins = np.empty(rows_count * fields_count * 2 + 1, np.int32)
    fields = begins[:-1].reshape(rows_count, fields_count * 2)
    fields[:, 0] = block.starts
    fields[:, 1:-1:2] = delimiters
    fields[:, 2::2] = delimiters + len(delimiter)
    fields[:, -1] = block.ends
    begins[-1] = begins[-2]
    if (fields[:, 1] < fields[:, 0]).any() or (fields[:, -2] > fields[:, -1]).any():
        return None  # a record lacks a delimiter, and another record has it
    pieces = pa.BinaryArray.from_buffers(
        pa.binary(), len(begins) - 1, [None, pa.py_buffer(begins), pa.py_buffer(data)]
    )
    return [
        _column(
            *(pieces, view, fields[:, index * 2], fields[:, index * 2 + 1], index * 2),
            [text.encode() for text in nulls],
        )
        for index, nulls in zip(indexes, nulls_of, strict=True)
    ]


def _places(view: npt.NDArray[np.uint8], delimiter: bytes) -> npt.NDArray[np.intp] | None:
    """Return where the delimiter begins; None if two of them overlap."""
    found = np.flatnonzero(view == delimiter[0])
    if len(delimiter) == 1:
        return found
    found = found[found <= len(view) - len(delimiter)]
    for i, byte in enumerate(delimiter[1:], start=1):
        found = found[view[found + i] == byte]
    return None if (np.diff(found) < len(delimiter)).any() else found


def _holds_specials(data: bytes, dialect: CsvDialect) -> bool:
    blanks = BLANKS if dialect.trim != "none" else ""
    return any(
        character is not None and character != dialect.delimiter and character.encode() in data
        for character in (dialect.quote, dialect.escape, *blanks)
    )


def _column(
    pieces: pa.BinaryArray,
    view: npt.NDArray[np.uint8],
    begins: npt.NDArray[np.int32],
    ends: npt.NDArray[np.int32],
    first: int,
    nulls: Sequence[bytes],
) -> pa.BinaryArray:
    """Return one field of each record: every n-th of `pieces`, from `first` on."""
    step = len(pieces) // len(begins)
    places = np.arange(first, len(pieces), step, dtype=np.int32)
    is_null = null_fields(view, begins, ends, nulls)
    return pieces.take(pa.array(places, mask=is_null if is_null.any() else None))


def null_fields(
    view: npt.NDArray[np.uint8],
    begins: npt.NDArray[np.integer[Any]],
    ends: npt.NDArray[np.integer[Any]],
    nulls: Sequence[bytes],
) -> npt.NDArray[np.bool_]:
    """Return which fields, given by their offsets in `view`, are one of the texts `nulls`."""
    is_null = np.zeros(len(begins), bool)
    lengths = ends - begins
    for text in nulls:
        same = np.flatnonzero(lengths == len(text))
        for i, byte in enumerate(text):
            same = same[view[begins[same] + i] == byte]
        is_null[same] = True
    return is_null
