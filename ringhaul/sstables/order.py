"""Rows in the order of an SSTable: by token, partition key, clustering, and then as they came."""

from __future__ import annotations

import numpy as np
from numba import types

from ringhaul.cql.compiled import INT32_TABLE, INT32S, INT64S, UINT8S, Int, inlined, kernel


@inlined
def _compare_bytes(data: Int, a: Int, a_size: Int, b: Int, b_size: Int) -> Int:
    for k in range(min(a_size, b_size)):
        if data[a + k] != data[b + k]:
            return 1 if data[a + k] > data[b + k] else -1
    return (a_size > b_size) - (a_size < b_size)


@inlined
def _compare(
    a: Int, b: Int, keys: Int, key_offsets: Int, pool: Int, offsets: Int, bases: Int, descends: Int
) -> Int:
    """Compare rows by key (2 or -2 if these differ) and clustering (1 or -1)."""
    found = _compare_bytes(
        keys, np.int64(key_offsets[a]), key_offsets[a + 1] - key_offsets[a],
        np.int64(key_offsets[b]), key_offsets[b + 1] - key_offsets[b],
    )  # fmt: skip
    if found:
        return 2 * found
    for c in range(len(bases)):
        found = _compare_bytes(
            pool, bases[c] + offsets[c, a], offsets[c, a + 1] - offsets[c, a],
            bases[c] + offsets[c, b], offsets[c, b + 1] - offsets[c, b],
        )  # fmt: skip
        if found:
            return -found if descends[c] else found
    return 0


@kernel(
    types.int64(
        INT64S, INT64S, UINT8S, INT32S, UINT8S, INT32_TABLE, INT64S, UINT8S, UINT8S, INT64S,
    )
)  # fmt: skip
def arrange(
    order: Int, tokens: Int, keys: Int, key_offsets: Int, pool: Int, offsets: Int, bases: Int,
    descends: Int, begins: Int, extremes: Int,
) -> Int:  # fmt: skip
    """Sort rows of one token by key and clustering; return the number of partitions.

    `order`: rows by token, and within a token as they came; changed in place. `tokens`: tokens in
    that order. Clustering columns: values that compare byte by byte (`comparable.py`), laid out as
    `encode_data` says; `descends`: 1 for descending order. `begins`: set for each place of `order`.
    `extremes`: set to the rows with the smallest and the largest clustering.
    """
    rows = len(order)
    partitions = 0
    buffer = np.empty(rows, np.int64)
    if rows:
        extremes[0] = extremes[1] = order[0]
    start = 0
    while start < rows:
        end = start + 1
        is_sorted = True
        while end < rows and tokens[end] == tokens[start]:
            is_sorted = is_sorted and _compare(
                order[end - 1], order[end], keys, key_offsets, pool, offsets, bases, descends
            ) <= 0  # fmt: skip
            end += 1
        width = 1 if not is_sorted else end - start
        while width < end - start:  # merge sort: runs of `width` are sorted
            for first in range(start, end, 2 * width):
                middle, last = min(first + width, end), min(first + 2 * width, end)
                a, b = first, middle
                for k in range(first, last):
                    if b == last or (
                        a < middle
                        and _compare(
                            order[a], order[b], keys, key_offsets, pool, offsets, bases, descends
                        ) <= 0
                    ):  # fmt: skip
                        buffer[k] = order[a]
                        a += 1
                    else:
                        buffer[k] = order[b]
                        b += 1
            for k in range(start, end):
                order[k] = buffer[k]
            width *= 2
        begins[start] = 2
        partitions += 1
        for k in range(start + 1, end):
            differs = _compare(
                order[k - 1], order[k], keys, key_offsets, pool, offsets, bases, descends
            )
            begins[k] = min(2, abs(differs))
            if begins[k] == 2:
                partitions += 1
        if len(bases):
            for k in range(start, end):
                for which in range(2):
                    found = 0
                    for c in range(len(bases)):
                        a, b = order[k], extremes[which]
                        found = _compare_bytes(
                            pool, bases[c] + offsets[c, a], offsets[c, a + 1] - offsets[c, a],
                            bases[c] + offsets[c, b], offsets[c, b + 1] - offsets[c, b],
                        )  # fmt: skip
                        if found:
                            found = -found if descends[c] else found
                            break
                    if (which == 0 and found < 0) or (which == 1 and found > 0):
                        extremes[which] = order[k]
        start = end
    return partitions
