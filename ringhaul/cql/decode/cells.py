"""Kernels that find cells: where each value starts in a page and how long it is.

A cell is an int32 length and as many bytes; -1 is null. Every length is checked against the
remaining bytes of its container, so starts and lengths from here always lie inside the page. Lists,
maps, tuples and user-defined types are cells within a cell; so all elements of a column are
found at once, and decoded as a column of the element's type.

Starts and lengths are int32: a page is below 256 MiB. All kernels return -1 - i if cell i of their
input is bad; their output is then invalid.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.compiled import (
    COUNT,
    FLAG,
    INT32_TABLE,
    INT32S,
    PAGE,
    Int,
    inlined,
    kernel,
)

Page = NDArray[np.uint8]
Int32s = NDArray[np.int32]

# Indexes are converted to unsigned, as numba would count a negative one from the end.


@inlined
def _int32(page: Page, at: Int) -> Int:
    """Read the big-endian int32 at `at`; the caller has checked that there are 4 bytes."""
    return np.int32(
        np.uint32(page[np.uintp(at)]) << np.uint32(24)
        | np.uint32(page[np.uintp(at + 1)]) << np.uint32(16)
        | np.uint32(page[np.uintp(at + 2)]) << np.uint32(8)
        | np.uint32(page[np.uintp(at + 3)])
    )


@kernel(COUNT(PAGE, COUNT, COUNT, COUNT, COUNT, INT32_TABLE, INT32_TABLE))
def find_cells(
    page: Page, at: Int, end: Int, first: Int, rows_count: Int, starts: Int32s, lengths: Int32s
) -> Int:
    """Find the cells of the rows that begin at `at`; write each column's starts and lengths from
    row `first` on.

    Returns where the last cell ends, at most `end`.
    """
    columns_count = starts.shape[0]
    for row in range(rows_count):
        for column in range(columns_count):
            if end - at < 4:
                return -1 - (row * columns_count + column)
            length = np.int64(_int32(page, at))
            at += 4
            if length < -1 or length > end - at:
                return -1 - (row * columns_count + column)
            starts[np.uintp(column), np.uintp(first + row)] = at
            lengths[np.uintp(column), np.uintp(first + row)] = length
            if length > 0:
                at += length
    return at


@kernel(COUNT(PAGE, INT32S, INT32S, COUNT, INT32S))
def count_elements(page: Page, starts: Int32s, lengths: Int32s, per: Int, offsets: Int32s) -> Int:
    """Count the elements of lists, sets (`per` 1) or maps (`per` 2). `offsets`, one more than the
    cells, gets the number of elements before each cell.

    Returns the total. A cell too small for its count is bad.
    """
    total = np.int64(0)
    offsets[0] = 0
    for i in range(starts.size):
        length = np.int64(lengths[np.uintp(i)])
        if length > 0:
            if length < 4:
                return -1 - i
            count = np.int64(_int32(page, np.int64(starts[np.uintp(i)])))
            if count < 0 or count * per * 4 > length - 4:
                return -1 - i
            total += count
        offsets[np.uintp(i + 1)] = total
    return total


@kernel(COUNT(PAGE, INT32S, INT32S, INT32S, INT32_TABLE, INT32_TABLE))
def find_elements(
    page: Page,
    starts: Int32s,
    lengths: Int32s,
    offsets: Int32s,
    inner_starts: Int32s,
    inner_lengths: Int32s,
) -> Int:
    """Find the elements of lists and sets (one row of inner starts) or of maps (keys, values).

    `offsets` come from `count_elements`. A cell must end with its last element.
    """
    per = inner_starts.shape[0]
    for i in range(starts.size):
        if lengths[np.uintp(i)] <= 0:
            continue
        at = np.int64(starts[np.uintp(i)]) + 4
        end = at - 4 + np.int64(lengths[np.uintp(i)])
        for element in range(offsets[np.uintp(i)], offsets[np.uintp(i + 1)]):
            for part in range(per):
                if end - at < 4:
                    return -1 - i
                length = np.int64(_int32(page, at))
                at += 4
                if length < -1 or length > end - at:
                    return -1 - i
                inner_starts[np.uintp(part), np.uintp(element)] = at
                inner_lengths[np.uintp(part), np.uintp(element)] = length
                if length > 0:
                    at += length
        if at != end:
            return -1 - i
    return 0


@kernel(COUNT(PAGE, INT32S, INT32S, FLAG, INT32_TABLE, INT32_TABLE))
def find_fields(
    page: Page,
    starts: Int32s,
    lengths: Int32s,
    may_have_more: bool,
    inner_starts: Int32s,
    inner_lengths: Int32s,
) -> Int:
    """Find the fields of tuples and user-defined types; each field has a row of inner starts.

    Fields missing at the end of a cell are null, as are all fields of a null cell. Bytes after the
    last field are ignored if the cell `may_have_more` fields than are known.
    """
    for i in range(starts.size):
        at = np.int64(starts[np.uintp(i)])
        length = np.int64(lengths[np.uintp(i)])
        end = at + length if length > 0 else at
        for field in range(inner_starts.shape[0]):
            length = np.int64(-1)
            if at < end:
                if end - at < 4:
                    return -1 - i
                length = np.int64(_int32(page, at))
                at += 4
                if length < -1 or length > end - at:
                    return -1 - i
            inner_starts[np.uintp(field), np.uintp(i)] = at
            inner_lengths[np.uintp(field), np.uintp(i)] = length
            if length > 0:
                at += length
        if at != end and not may_have_more:
            return -1 - i
    return 0


@kernel(COUNT(PAGE, INT32S, INT32S, COUNT, INT32S, INT32S))
def find_items(
    page: Page,
    starts: Int32s,
    lengths: Int32s,
    size: Int,
    inner_starts: Int32s,
    inner_lengths: Int32s,
) -> Int:
    """Find elements of vectors whose elements vary in size: each has its length as unsigned vint.

    The elements of a null vector are null. Returns how many vectors are null or empty.
    """
    missing = 0
    for i in range(starts.size):
        base = i * size
        if lengths[np.uintp(i)] <= 0:
            missing += 1
            for item in range(base, base + size):
                inner_starts[np.uintp(item)] = 0
                inner_lengths[np.uintp(item)] = -1
            continue
        at = np.int64(starts[np.uintp(i)])
        end = at + np.int64(lengths[np.uintp(i)])
        for item in range(base, base + size):
            if at >= end:
                return -1 - i
            # The first byte's leading ones count the bytes that follow it.
            head = np.int64(page[np.uintp(at)])
            at += 1
            more = 0
            while more < 8 and head & (0x80 >> more):
                more += 1
            length = head & (0xFF >> more)
            # A length below 2**31 needs at most 4 more bytes; longer forms are never written.
            if more > 4 or more > end - at:
                return -1 - i
            for _ in range(more):
                length = length << 8 | np.int64(page[np.uintp(at)])
                at += 1
            if length > end - at:
                return -1 - i
            inner_starts[np.uintp(item)] = at
            inner_lengths[np.uintp(item)] = length
            at += length
        if at != end:
            return -1 - i
    return missing
