"""Compiled kernels that find and decode fields with escapes: some ns a byte."""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from ringhaul.cql.compiled import (
    COUNT,
    FLAG,
    INT64_TABLE,
    INT64S,
    PAGE,
    READ_INT64S,
    UINT8S,
    Int,
    inlined,
    kernel,
)

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]
_READ_UINT8S = types.Array(types.uint8, 1, "C", readonly=True)

#: Whether the first character of a field is a quote.
UNQUOTED, QUOTED = 0, 1


@inlined
def _follows(data: Bytes, at: Int, end: Int, rest: Bytes) -> bool:
    """Return whether `data[at:end]` begins with `rest`."""
    if at + rest.size > end:
        return False
    same = 0
    while same < rest.size and data[np.uintp(at + same)] == rest[np.uintp(same)]:
        same += 1
    return same == rest.size


@kernel(
    types.void(
        *(PAGE, READ_INT64S, READ_INT64S, COUNT, PAGE, COUNT, COUNT, FLAG, FLAG),
        *(INT64_TABLE, INT64_TABLE, types.uint8[:, ::1], INT64S),
    )
)
def find_fields(
    data: Bytes,
    starts: Offsets,
    ends: Offsets,
    delimiter: Int,
    rest: Bytes,
    quote: Int,
    escape: Int,
    bare: bool,
    trim: bool,
    begins: NDArray[np.int64],
    stops: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    counts: Offsets,
) -> None:
    """Find the fields of each record: where they begin and stop, quotes included.

    `begins`, `stops`, `kinds`: shape (records, fields), all kinds `UNQUOTED`. Extra fields are only
    counted, and nothing is written for missing fields. A character that the dialect does not have
    is -1. `rest`: the bytes of the delimiter after its first, `delimiter`. `bare`: whether escapes
    also count outside of quotes. `trim`: leave out the blanks around fields, and let a quote after
    blanks open a quoted field.
    """
    fields_max = begins.shape[1]
    for record in range(starts.size):
        at, end = starts[np.uintp(record)], ends[np.uintp(record)]
        field = 0
        begin = at
        last = at  # one after the last byte that is not a blank
        inside = False
        first = True
        while at <= end:
            byte = np.int64(-2) if at == end else np.int64(data[np.uintp(at)])
            if byte == -2 or (
                byte == delimiter and not inside and _follows(data, at + 1, end, rest)
            ):
                if field < fields_max:
                    begins[np.uintp(record), np.uintp(field)] = begin
                    stops[np.uintp(record), np.uintp(field)] = last if trim else at
                field += 1
                at += 1 + rest.size
                begin = at
                last = at
                first = True
                continue
            if trim and not inside and (byte == 32 or byte == 9):
                at += 1
                if first:
                    begin = at
                    last = at
                continue
            if byte == escape and (bare or inside):
                # An escape character that is the record's last byte hides nothing.
                at = min(at + 2, end)
            elif byte == quote and first:
                inside = True
                if field < fields_max:
                    kinds[np.uintp(record), np.uintp(field)] = QUOTED
                at += 1
            elif byte == quote and inside:
                if at + 1 < end and np.int64(data[np.uintp(at + 1)]) == quote:
                    at += 1
                else:
                    inside = False
                at += 1
            else:
                at += 1
            last = at
            first = False
        counts[np.uintp(record)] = field


@inlined
def _digit(byte: Int) -> Int:
    """Return the value of a hexadecimal digit; -1 for any other character."""
    if 48 <= byte <= 57:
        return byte - 48
    if 65 <= byte <= 70:
        return byte - 55
    if 97 <= byte <= 102:
        return byte - 87
    return -1


@kernel(
    COUNT(
        *(PAGE, READ_INT64S, READ_INT64S, _READ_UINT8S, _READ_UINT8S, COUNT, COUNT),
        *(FLAG, _READ_UINT8S, FLAG, UINT8S, types.int32[::1], UINT8S),
    )
)
def decode_fields(
    data: Bytes,
    begins: Offsets,
    stops: Offsets,
    kinds: Bytes,
    skips: Bytes,
    quote: Int,
    escape: Int,
    bare: bool,
    meanings: Bytes,
    numbers: bool,
    out: Bytes,
    offsets: NDArray[np.int32],
    nuls: Bytes,
) -> Int:
    """Write the decoded fields of one column into `out`, joined, and return their length.

    A field that `skips` marks has no value. `offsets`: one more than fields. `nuls` marks the
    fields with a literal NUL byte. `out` has room for the text as written in the file. Unless
    `bare`, escapes are within quotes alone, and hide only a quote or an escape character.
    """
    size = np.int64(0)
    offsets[0] = 0
    for row in range(begins.size):
        i = np.uintp(row)
        if not skips[i]:
            at, stop = begins[i], stops[i]
            inside = kinds[i] == QUOTED
            if inside:
                at += 1
            while at < stop:
                byte = np.int64(data[np.uintp(at)])
                at += 1
                if byte == escape and not bare:
                    if inside and at < stop:
                        following = np.int64(data[np.uintp(at)])
                        if following in (quote, escape):
                            byte = following
                            at += 1
                elif byte == escape:
                    if at >= stop:
                        break
                    byte = np.int64(data[np.uintp(at)])
                    at += 1
                    if byte == 0:
                        nuls[i] = 1
                    if numbers and 48 <= byte <= 55:
                        number = byte - 48
                        for _ in range(2):
                            if at < stop and 48 <= data[np.uintp(at)] <= 55:
                                number = number * 8 + np.int64(data[np.uintp(at)]) - 48
                                at += 1
                            else:
                                break
                        byte = number & 255
                    elif numbers and byte == 120 and at < stop:
                        number = _digit(np.int64(data[np.uintp(at)]))
                        if number >= 0:
                            at += 1
                            byte = number
                            if at < stop:
                                number = _digit(np.int64(data[np.uintp(at)]))
                                if number >= 0:
                                    at += 1
                                    byte = byte * 16 + number
                    else:
                        byte = np.int64(meanings[np.uintp(byte)])
                elif byte == quote and inside:
                    if at < stop and np.int64(data[np.uintp(at)]) == quote:
                        at += 1
                    else:
                        inside = False
                        continue
                elif byte == 0:
                    nuls[i] = 1
                out[np.uintp(size)] = byte
                size += 1
        offsets[np.uintp(row + 1)] = size
    return size
