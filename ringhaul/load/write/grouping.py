"""Rows -> batches that one replica set can take without the server logging a warning. Pure.

The server warns of an unlogged batch that touches more than 10 partitions and of one over 5 KiB
that spans partitions (`unlogged_batch_across_partitions_warn_threshold`,
`batch_size_warn_threshold`). It counts a batch's size as it would store it, which is more than
what is sent: 8 bytes of timestamp per cell and per row (`Row.dataSize`), and as much again when
a TTL is set.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

BATCH_BYTES_MAX = 5 * 1024
BATCH_PARTITIONS_MAX = 10
#: A batch of one partition is one mutation and never warned of; this only bounds one request.
BATCH_ROWS_MAX = 100


class Group(NamedTuple):
    """Rows first..last-1 of `order` form one batch for one replica set."""

    replica_set: int
    first: int
    last: int


def stored_bytes(
    row_bytes: npt.NDArray[np.int64], cells: int, *, ttl: bool
) -> npt.NDArray[np.int64]:
    """Upper bound of what the server counts for rows of `row_bytes` bound bytes each."""
    per_cell = 12 if ttl else 4  # beside the 4 bytes of length that row_bytes already holds
    return row_bytes + (per_cell + 4) * cells + 24


def order_rows(sets: npt.NDArray[np.int32], tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Row indexes by replica set, then token: rows of one partition stand together."""
    return np.lexsort((tokens, sets))


def group_rows(
    sets: npt.NDArray[np.int32], tokens: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> Iterator[Group]:
    """Greedy batches over rows already in `order_rows` order; they tile the rows.

    `sizes` are `stored_bytes`. A row larger than a batch goes alone.
    """
    count = len(sets)
    if not count:
        return
    set_starts = np.flatnonzero(np.diff(sets, prepend=sets[0] - 1))
    # Number of the partition each row belongs to, and the first row of each partition.
    new_partition = np.ones(count, dtype=bool)
    new_partition[1:] = (tokens[1:] != tokens[:-1]) | (sets[1:] != sets[:-1])
    partition = np.cumsum(new_partition) - 1
    partition_starts = np.append(np.flatnonzero(new_partition), count)
    total = np.concatenate(([0], np.cumsum(sizes)))
    for set_first, set_last in zip(set_starts, np.append(set_starts[1:], count), strict=True):
        first = int(set_first)
        while first < set_last:
            by_partitions = partition_starts[
                min(partition[first] + BATCH_PARTITIONS_MAX, len(partition_starts) - 1)
            ]
            by_bytes = np.searchsorted(total, total[first] + BATCH_BYTES_MAX, side="right") - 1
            last = int(min(by_partitions, by_bytes, set_last, first + BATCH_ROWS_MAX))
            last = max(last, first + 1)
            yield Group(int(sets[first]), first, last)
            first = last
