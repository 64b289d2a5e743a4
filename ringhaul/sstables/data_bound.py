"""A bound on the bytes of Data.db. Kernels write to arrays of that size."""

from __future__ import annotations

#: Bytes of the two sizes before a row's body.
_SIZES = 18


def data_bytes_max(
    rows: int, partitions: int, columns: int, clustering: int, values_bytes: int, elements: int
) -> int:
    """Return a bound on the bytes of Data.db.

    `values_bytes`: bytes of all keys, clusterings and values. A partition has at most 15 bytes
    besides its key. A row has a flag and at most 9 bytes for each of: two sizes, three times, 32
    clustering columns and the missing columns (from 64 columns on 3 bytes for each, and 3). A value
    has at most 5 bytes of length, and a cell also a flag and three times. `elements`: elements of
    all collections, cells that each have a path; a collection has its own two times and count.
    """
    row = 2 + _SIZES + 27 + 9 * -(-clustering // 32) + 9 + 3 * columns
    return (
        values_bytes
        + 38 * elements
        + 15 * partitions
        + rows * (row + 5 * clustering + 33 * columns)
    )
