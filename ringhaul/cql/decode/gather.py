"""Kernels that copy the bytes of found cells into the buffers of an Arrow column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.compiled import (
    COUNT,
    INT32S,
    PAGE,
    UINT8S,
    UINT16S,
    UINT32S,
    UINT64S,
    Int,
    kernel,
)
from ringhaul.cql.decode.cells import Int32s, Page

Words = NDArray[np.unsignedinteger]


@kernel(*[COUNT(PAGE, INT32S, INT32S, out) for out in (UINT8S, UINT16S, UINT32S, UINT64S)])
def gather_words(page: Page, starts: Int32s, lengths: Int32s, out: Words) -> Int:
    """Convert cells that are big-endian words to words of this machine.

    Returns how many cells are null or empty (their words are 0), or -1 - i for the first cell of
    another length.
    """
    width = out.itemsize
    missing = 0
    for i in range(starts.size):
        length = np.int64(lengths[np.uintp(i)])
        word = np.uint64(0)
        if length == width:
            at = np.int64(starts[np.uintp(i)])
            for k in range(width):
                word = word << np.uint64(8) | np.uint64(page[np.uintp(at + k)])
        elif length <= 0:
            missing += 1
        else:
            return -1 - i
        out[np.uintp(i)] = word
    return missing


@kernel(COUNT(PAGE, INT32S, INT32S, COUNT, UINT8S))
def gather_bytes(page: Page, starts: Int32s, lengths: Int32s, width: Int, out: Page) -> Int:
    """Copy cells of `width` bytes; a null or empty cell becomes 0. Returns as `gather_words`."""
    missing = 0
    for i in range(starts.size):
        length = np.int64(lengths[np.uintp(i)])
        to = i * width
        if length == width:
            at = np.int64(starts[np.uintp(i)])
            for k in range(width):
                out[np.uintp(to + k)] = page[np.uintp(at + k)]
        elif length <= 0:
            missing += 1
            for k in range(width):
                out[np.uintp(to + k)] = 0
        else:
            return -1 - i
    return missing


@kernel(COUNT(INT32S, INT32S))
def fill_offsets(lengths: Int32s, offsets: Int32s) -> Int:
    """Compute where each value begins in their concatenation; nulls take no bytes.

    `offsets` has one item more than `lengths`. Returns how many values are null.
    """
    total = np.int64(0)
    missing = 0
    offsets[0] = 0
    for i in range(lengths.size):
        length = np.int64(lengths[np.uintp(i)])
        if length < 0:
            missing += 1
        else:
            total += length
        offsets[np.uintp(i + 1)] = total
    return missing


@kernel(COUNT(PAGE, INT32S, INT32S, UINT8S))
def copy_cells(page: Page, starts: Int32s, offsets: Int32s, out: Page) -> Int:
    """Concatenate values at the `offsets` of `fill_offsets`. Returns the or of all bytes."""
    seen = np.uint8(0)
    for i in range(starts.size):
        to = np.int64(offsets[np.uintp(i)])
        at = np.int64(starts[np.uintp(i)])
        for k in range(np.int64(offsets[np.uintp(i + 1)]) - to):
            byte = page[np.uintp(at + k)]
            out[np.uintp(to + k)] = byte
            seen |= byte
    return np.int64(seen)
