"""Rows -> batches that one replica set can take without the server logging a warning. Pure.

The server warns of an unlogged batch that touches more than 10 partitions and of one over 5 KiB
that spans partitions (`unlogged_batch_across_partitions_warn_threshold`,
`batch_size_warn_threshold`). It counts a batch's size as it would store it, which is more than
what is sent (`Row.dataSize` and `Cell.dataSize` of Cassandra 5.0, which count more than those of
older versions).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BATCH_BYTES_MAX = 5 * 1024
BATCH_PARTITIONS_MAX = 10
#: A batch of one partition is one mutation and never warned of; this only bounds one request.
BATCH_ROWS_MAX = 100

#: Into how many parts of a block's tokens the batches that follow one another go in turn. Rows that
#: are neighbours by token are cheaper to write together (a third more a second than in the order of
#: the file), but a memtable may have a lock for each part of the ring: see ADR 0016.
STRIPES = 16

#: What the server counts besides values: of a cell 20 bytes (timestamp, TTL, expiry), of which the
#: length that is bound with each value makes up for 4, and of a row its timestamp and deletions.
_CELL_BYTES = 16
_ROW_BYTES = 64
#: An element of a list, bound as 4 bytes and its value, is a cell with a path of 16 bytes.
_ELEMENT_GROWTH = 8


def stored_bytes(
    row_bytes: npt.NDArray[np.int64], cells: int, many_bytes: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Upper bound of what the server counts for rows of `row_bytes` bound bytes each.

    `many_bytes`: of them, those of values that may be stored in a cell for each of their elements.
    """
    return row_bytes + _CELL_BYTES * cells + _ROW_BYTES + _ELEMENT_GROWTH * many_bytes


def order_rows(sets: npt.NDArray[np.int32], tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Row indexes by replica set, then token: rows of one partition stand together."""
    by_token = np.argsort(tokens)  # the sort that is vectorised, and need not be stable
    if len(sets) and (sets == sets[0]).all():
        return by_token
    order: npt.NDArray[np.int64] = by_token[np.argsort(sets[by_token], kind="stable")]
    return order


def group_rows(
    sets: npt.NDArray[np.int32], tokens: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Where greedy batches begin, and where the last one ends: batch i is rows cuts[i]:cuts[i + 1].

    Rows of one replica set stand together, and rows of one partition had better. `sizes` are
    `stored_bytes`. A row larger than a batch goes alone.
    """
    count = len(sets)
    if not count:
        return np.zeros(1, np.int64)
    rows = np.arange(count)
    new_set = sets[1:] != sets[:-1]
    set_ends = _ends(new_set, 1)
    partition_ends = _ends(new_set | (tokens[1:] != tokens[:-1]), BATCH_PARTITIONS_MAX)
    total = np.concatenate(([0], np.cumsum(sizes)))
    size_ends = np.searchsorted(total, total[:-1] + BATCH_BYTES_MAX, side="right") - 1
    ends = np.minimum.reduce([set_ends, partition_ends, size_ends, rows + BATCH_ROWS_MAX])
    # A batch begins where the one before it ends: only following them says which rows those are.
    following = np.maximum(ends, rows + 1).tolist()
    cuts = [0]
    while cuts[-1] < count:
        cuts.append(following[cuts[-1]])
    return np.array(cuts)


def interleave(
    cuts: npt.NDArray[np.int64], sets: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """An order of rows by which batches that follow one another are of different parts of the ring,
    and the cuts of the batches in that order.

    `cuts`: as of `group_rows`, of rows by token; `sets`: of each row. The batches of a replica set
    stay together, one of each of `STRIPES` equal parts of them in turn.
    """
    lengths = np.diff(cuts)
    set_of = sets[cuts[:-1]]
    new_set = np.flatnonzero(np.diff(set_of, prepend=-1))
    counts = np.diff(np.append(new_set, len(set_of)))
    count = np.repeat(counts, counts)
    place = np.arange(len(set_of)) - np.repeat(new_set, counts)
    stripe = place * STRIPES // count
    place_in_stripe = place + (-stripe * count) // STRIPES
    batches = np.lexsort((stripe, place_in_stripe, np.repeat(np.arange(len(counts)), counts)))
    interleaved = np.zeros(len(cuts), np.int64)
    np.cumsum(lengths[batches], out=interleaved[1:])
    shifts = cuts[:-1][batches] - interleaved[:-1]
    return np.arange(len(sets)) + np.repeat(shifts, lengths[batches]), interleaved


def _ends(changes: npt.NDArray[np.bool_], runs: int) -> npt.NDArray[np.int64]:
    """Of each row, where the run that it is in and those after it end, `runs` in all.

    `changes`: where a row is not of the same run as the one before it, from the second row on.
    """
    number = np.concatenate(([0], np.cumsum(changes)))
    ends = np.append(np.flatnonzero(changes) + 1, len(number))
    found: npt.NDArray[np.int64] = ends[np.minimum(number + runs, len(ends)) - 1]
    return found
