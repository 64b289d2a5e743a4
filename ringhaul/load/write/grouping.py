"""Group rows into batches for one replica set, without warnings in the server's log. Pure.

The server warns of an unlogged batch that touches more than 10 partitions, or that spans partitions
and has more than 5 KiB (`unlogged_batch_across_partitions_warn_threshold`,
`batch_size_warn_threshold`). It counts a batch's size as it would store it, which is more than
what is sent (`Row.dataSize` and `Cell.dataSize` of Cassandra 5.0, which count more than older
versions do).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BATCH_BYTES_MAX = 5 * 1024
BATCH_PARTITIONS_MAX = 10
#: A batch of one partition is one mutation and causes no warning; this only bounds one request.
BATCH_ROWS_MAX = 100

#: Number of parts of a block's tokens from which successive batches are taken in turn. Rows that
#: are neighbours by token are cheaper to write together (a third more a second than in the order of
#: the file), but a memtable may have a lock for each part of the ring: see ADR 0016.
STRIPES = 16

#: What the server counts besides values: 20 bytes per cell (timestamp, TTL, expiry), of which the
#: length that is bound with each value makes up for 4, and per row its timestamp and deletions.
_CELL_BYTES = 16
_ROW_BYTES = 64
#: An element of a list, bound as 4 bytes and its value, is a cell with a path of 16 bytes.
_ELEMENT_GROWTH = 8


def stored_bytes(
    row_bytes: npt.NDArray[np.int64], cells: int, many_bytes: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return an upper bound of what the server counts for rows of `row_bytes` bound bytes each.

    `many_bytes`: how many of these are in values that may be stored in a cell for each element.
    """
    return row_bytes + _CELL_BYTES * cells + _ROW_BYTES + _ELEMENT_GROWTH * many_bytes


def order_rows(sets: npt.NDArray[np.int32], tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return row indexes by replica set, then token: rows of one partition are adjacent."""
    by_token = np.argsort(tokens)  # this sort is vectorised, and need not be stable
    if len(sets) and (sets == sets[0]).all():
        return by_token
    order: npt.NDArray[np.int64] = by_token[np.argsort(sets[by_token], kind="stable")]
    return order


def group_rows(
    sets: npt.NDArray[np.int32],
    tokens: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    rows_max: int = 0,
) -> npt.NDArray[np.int64]:
    """Return where greedy batches begin, and the last ends: batch i is rows cuts[i]:cuts[i + 1].

    Rows of one replica set must be adjacent, and rows of one partition should be. `sizes` are
    `stored_bytes`. `rows_max`: rows in a batch; 0: as many as the server takes. A row larger than a
    batch goes alone.
    """
    count = len(sets)
    if not count:
        return np.zeros(1, np.int64)
    rows = np.arange(count)
    most = min(rows_max or BATCH_ROWS_MAX, BATCH_ROWS_MAX)
    new_set = sets[1:] != sets[:-1]
    set_ends = _ends(new_set, 1)
    partition_ends = _ends(new_set | (tokens[1:] != tokens[:-1]), BATCH_PARTITIONS_MAX)
    total = np.concatenate(([0], np.cumsum(sizes)))
    size_ends = np.searchsorted(total, total[:-1] + BATCH_BYTES_MAX, side="right") - 1
    ends = np.minimum.reduce([set_ends, partition_ends, size_ends, rows + most])
    # A batch begins where the previous batch ends, so batches have to be followed one by one.
    following = np.maximum(ends, rows + 1).tolist()
    cuts = [0]
    while cuts[-1] < count:
        cuts.append(following[cuts[-1]])
    return np.array(cuts)


def interleave(
    cuts: npt.NDArray[np.int64], sets: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Order rows so that successive batches come from different parts of the ring.

    Returns the order, and the cuts of the batches in it. `cuts`: the result of `group_rows` for
    rows sorted by token; `sets`: each row's replica set. The batches of a replica set stay
    together, taken in turn from `STRIPES` equal parts.
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
    """Return for each row the end of its run, or of the last of `runs` runs that begin with it.

    `changes`: whether a row is in another run than the row before it, from the second row on.
    """
    number = np.concatenate(([0], np.cumsum(changes)))
    ends = np.append(np.flatnonzero(changes) + 1, len(number))
    found: npt.NDArray[np.int64] = ends[np.minimum(number + runs, len(ends)) - 1]
    return found
