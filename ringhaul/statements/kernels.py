"""The compiled loops of `replies.py` over the bytes of responses.

Every length is checked against the rest of its frame.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from ringhaul.cql.compiled import (
    COUNT,
    FLAG,
    INT32S,
    INT64_TABLE,
    INT64S,
    PAGE,
    UINT8S,
    inlined,
    kernel,
)
from ringhaul.cql.frames import BODY_BYTES_MAX, HEADER_BYTES, RESPONSE_VERSION

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

#: Kinds of frames.
OTHER, VOID, ROWS, MORE = 0, 1, 2, 3

RESULT = 0x08
KIND_VOID, KIND_ROWS = 1, 2
FLAG_WARNING = 0x08
HAS_MORE_PAGES = 0x02
NO_METADATA = 0x04

_FLAGS = types.boolean[::1]
_SCANNED: Any = types.Tuple(  # type: ignore[no-untyped-call]
    (types.int64, types.int64, types.boolean)
)


@inlined
def _int(data: Bytes, at: int) -> Any:
    value: Any = (
        (np.int64(data[at]) << 24)
        | (np.int64(data[at + 1]) << 16)
        | (np.int64(data[at + 2]) << 8)
        | np.int64(data[at + 3])
    )
    return value - (np.int64(1) << 32) if value >= np.int64(1) << 31 else value


@inlined
def _past_warnings(data: Bytes, at: Any, end: int) -> Any:
    """Return where the body begins after its warnings; -1 if they do not fit."""
    if end - at < 2:
        return -1
    count = (np.int64(data[at]) << 8) | np.int64(data[at + 1])
    at += 2
    for _ in range(count):
        if end - at < 2:
            return -1
        at += 2 + ((np.int64(data[at]) << 8) | np.int64(data[at + 1]))
        if at > end:
            return -1
    return at


@kernel(_SCANNED(PAGE, COUNT, INT64_TABLE))
def scan_frames(data: Bytes, columns: int, table: NDArray[np.int64]) -> tuple[int, int, bool]:
    """Return frames found, bytes consumed, and whether what follows may be a frame."""
    size = len(data)
    at: Any = 0
    count = 0
    while size - at >= HEADER_BYTES:
        length = _int(data, at + 5)
        if data[at] != RESPONSE_VERSION or length < 0 or length > BODY_BYTES_MAX:
            return count, at, False
        end = at + HEADER_BYTES + length
        if end > size:
            break
        stream: Any = (np.int64(data[at + 2]) << 8) | np.int64(data[at + 3])
        if stream >= 32768:
            stream -= 65536
        kind, start, rows = OTHER, end, 0
        body = at + HEADER_BYTES
        if data[at + 4] != RESULT or data[at + 1] & ~np.uint8(FLAG_WARNING):
            body = -1
        elif data[at + 1]:
            body = _past_warnings(data, body, end)
        if body >= 0 and end - body >= 4:
            what = _int(data, body)
            if what == KIND_VOID and end - body == 4:
                kind = VOID
            elif what == KIND_ROWS and end - body >= 16:
                flags = _int(data, body + 4)
                first = body + 12
                if flags & HAS_MORE_PAGES:
                    state = _int(data, first)
                    first = first + 4 + state if state >= 0 else end
                fits = end - first >= 4 and _int(data, body + 8) == columns
                if fits and flags & NO_METADATA and _int(data, first) >= 0:
                    kind = MORE if flags & HAS_MORE_PAGES else ROWS
                    start, rows = first + 4, _int(data, first)
        table[0, count] = stream
        table[1, count] = kind
        table[2, count] = at
        table[3, count] = start
        table[4, count] = end
        table[5, count] = rows
        count += 1
        at = end
    return count, at, True


@inlined
def _past_cells(data: Bytes, at: int, end: int, cells: int) -> int:
    """Return where this many cells end; -1 if they do not fit."""
    for _ in range(cells):
        if end - at < 4:
            return -1
        length = _int(data, at)
        at += 4
        if length < -1:
            return -1
        if length > 0:
            at += length
            if at > end:
                return -1
    return at


@kernel(COUNT(PAGE, INT64S, INT64S, INT64S, COUNT, UINT8S, COUNT))
def copy_rows(
    data: Bytes, starts: Ints, ends: Ints, counts: Ints, columns: int, out: Bytes, at: int
) -> int:
    """Copy the rows to `out` from `at` on; return where they end there, or -1 if malformed."""
    for i in range(len(starts)):
        start, end = starts[i], ends[i]
        # Each cell takes bytes: the product is small unless the count is wrong.
        if counts[i] > end - start or _past_cells(data, start, end, counts[i] * columns) != end:
            return -1
        out[at : at + end - start] = data[start:end]
        at += end - start
    return at


@inlined
def _same(data: Bytes, at: int, keys: Bytes, start: int, length: int) -> bool:
    for i in range(length):  # noqa: SIM110 - a generator is not compiled
        if data[at + i] != keys[start + i]:
            return False
    return True


@kernel(FLAG(PAGE, INT64S, INT64S, INT64S, COUNT, INT64S, INT64S, INT32S, PAGE, _FLAGS, INT64S))
def find_keys(
    data: Bytes,
    starts: Ints,
    ends: Ints,
    counts: Ints,
    columns: int,
    first: Ints,
    last: Ints,
    offsets: NDArray[np.int32],
    keys: Bytes,
    found: NDArray[np.bool_],
    out: Ints,
) -> bool:
    """See `match_keys`.

    Rows come in about the order of the keys in the list, so the search starts where the last key
    was found.
    """
    row = 0
    for i in range(len(starts)):
        at, end = starts[i], ends[i]
        guess, size = first[i], last[i] - first[i]
        for _ in range(counts[i]):
            if end - at < 4:
                return False
            length = _int(data, at)
            if length < 0 or at + 4 + length > end:
                return False
            key = np.int64(-1)
            for step in range(size):
                candidate = guess + step
                if candidate >= last[i]:
                    candidate -= size
                start = offsets[candidate]
                if offsets[candidate + 1] - start == length and _same(
                    data, at + 4, keys, start, length
                ):
                    key = candidate
                    break
            if key < 0:
                return False
            found[key] = True
            out[row] = guess = key
            row += 1
            at = _past_cells(data, at, end, columns)
            if at < 0:
                return False
        if at != end:
            return False
    return True
