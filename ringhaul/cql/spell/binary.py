"""Format uuid, timeuuid and blob: hexadecimal digits of whole columns at once."""

import binascii

import numpy as np
import pyarrow as pa

from ringhaul.cql.spell.fixed import numbers_of, text_rows, validity

#: 32 digits, without and with dashes between them.
_DIGITS = np.dtype([("a", "u8"), ("b", "u4"), ("c", "u4"), ("d", "u4"), ("e", "u8"), ("f", "u4")])
_DASHED = np.dtype(
    [
        *(("a", "u8"), ("_1", "u1"), ("b", "u4"), ("_2", "u1"), ("c", "u4"), ("_3", "u1")),
        *(("d", "u4"), ("_4", "u1"), ("e", "u8"), ("f", "u4")),
    ]
)


def spell_uuids(array: pa.FixedSizeBinaryArray) -> pa.StringArray:
    """Format UUIDs as `123e4567-e89b-12d3-a456-426614174000`."""
    data = numbers_of(array, np.dtype("V16"))
    digits = np.frombuffer(binascii.hexlify(data.tobytes()), _DIGITS)
    rows = np.empty(len(array), _DASHED)
    for name in _DIGITS.fields or ():
        rows[name] = digits[name]
    for dash in ("_1", "_2", "_3", "_4"):
        rows[dash] = b"-"[0]
    return text_rows(rows, array)


def spell_blobs(array: pa.BinaryArray) -> pa.StringArray:
    """Format blobs as `0xcafe`; an empty value is `0x`."""
    if not len(array):
        return pa.array([], pa.string())
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(data_buffer or b"", np.uint8)[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    # An extra byte before each value, whose two digits are then replaced by 0x.
    starts = offsets[:-1].astype(np.int64) + np.arange(len(array))
    is_data = np.ones(len(data) + len(array), np.bool_)
    is_data[starts] = False
    padded = np.empty(len(is_data), np.uint8)
    padded[is_data] = data
    digits = np.frombuffer(bytearray(binascii.hexlify(padded.data)), np.uint8)
    digits[2 * starts], digits[2 * starts + 1] = b"0x"
    ends = (offsets.astype(np.int64) + np.arange(len(array) + 1)) * 2
    if ends[-1] > 2**31 - 1:
        half = len(array) // 2
        if not half:
            raise ValueError(f"a blob of {len(data)} bytes is too long to be written as text")
        return pa.concat_arrays([spell_blobs(array[:half]), spell_blobs(array[half:])])
    return pa.StringArray.from_buffers(
        len(array),
        pa.py_buffer(ends.astype(np.int32)),
        pa.py_buffer(digits),
        validity(array),
        array.null_count,
    )
