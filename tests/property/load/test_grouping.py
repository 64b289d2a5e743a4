"""Groups tile any rows, have one replica set each, and stay below the server's bounds."""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.load.write.grouping import (
    BATCH_BYTES_MAX,
    BATCH_PARTITIONS_MAX,
    BATCH_ROWS_MAX,
    group_rows,
    interleave,
    order_rows,
)

Rows = list[tuple[int, int, int]]

#: Few sets and tokens so that partitions repeat, sizes around the bounds.
ROW = st.tuples(
    st.integers(0, 3),
    st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1)),
    st.one_of(st.integers(20, 200), st.integers(400, 700), st.integers(5000, 6000)),
)
ROWS = st.lists(ROW, max_size=300)
WIDE = st.lists(st.tuples(st.just(0), st.integers(0, 1), st.integers(20, 60)), max_size=400)


def ordered(rows: Rows) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    sets = np.array([row[0] for row in rows], np.int32)
    tokens = np.array([row[1] for row in rows], np.int64)
    sizes = np.array([row[2] for row in rows], np.int64)
    order = order_rows(sets, tokens)
    assert sorted(order.tolist()) == list(range(len(rows)))
    return sets[order], tokens[order], sizes[order]


@given(st.one_of(ROWS, WIDE))
def test_groups_tile_the_rows_within_the_servers_bounds(rows: Rows) -> None:
    sets, tokens, sizes = ordered(rows)
    cuts = group_rows(sets, tokens, sizes).tolist()
    # Every row is in exactly one group, in order
    assert cuts[0] == 0 and cuts[-1] == len(rows)
    assert cuts == sorted(set(cuts))
    for first, last in pairwise(cuts):
        part = slice(first, last)
        # Each group has one replica set
        assert len(set(sets[part].tolist())) == 1
        # The server warns about neither its partitions nor its size
        assert len(set(tokens[part].tolist())) <= BATCH_PARTITIONS_MAX
        assert sizes[part].sum() <= BATCH_BYTES_MAX or last - first == 1
        assert last - first <= BATCH_ROWS_MAX


@given(st.one_of(ROWS, WIDE))
def test_groups_are_as_large_as_the_bounds_allow(rows: Rows) -> None:
    sets, tokens, sizes = ordered(rows)
    for first, following in pairwise(group_rows(sets, tokens, sizes).tolist()):
        if following == len(rows) or sets[first] != sets[following]:
            continue
        # The group could not have taken the next row as well
        longer = slice(first, following + 1)
        too_many_rows = following + 1 - first > BATCH_ROWS_MAX
        too_many_partitions = len(set(tokens[longer].tolist())) > BATCH_PARTITIONS_MAX
        too_many_bytes = sizes[longer].sum() > BATCH_BYTES_MAX
        assert too_many_rows or too_many_partitions or too_many_bytes


@given(st.one_of(ROWS, WIDE))
def test_rows_in_the_order_of_their_file_stay_within_the_bounds_too(rows: Rows) -> None:
    # Given rows that are ordered by replica set only
    rows = sorted(rows, key=lambda row: row[0])
    sets, tokens, sizes = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    for first, last in pairwise(group_rows(sets.astype(np.int32), tokens, sizes).tolist()):
        assert len(set(sets[first:last].tolist())) == 1
        assert len(set(tokens[first:last].tolist())) <= BATCH_PARTITIONS_MAX
        assert sizes[first:last].sum() <= BATCH_BYTES_MAX or last - first == 1


@given(ROWS)
def test_rows_of_one_partition_are_adjacent(rows: Rows) -> None:
    sets, tokens, _ = ordered(rows)
    places = list(zip(sets.tolist(), tokens.tolist(), strict=True))
    assert places == sorted(places)


@given(st.one_of(ROWS, WIDE))
def test_interleaved_batches_are_the_same_batches(rows: Rows) -> None:
    sets, tokens, sizes = ordered(rows)
    cuts = group_rows(sets, tokens, sizes)
    if not len(sets):
        return
    order, cuts_then = interleave(cuts, sets)
    # Each batch has the same rows
    found = [order[first:last].tolist() for first, last in pairwise(cuts_then.tolist())]
    assert sorted(found) == [list(range(*batch)) for batch in pairwise(cuts.tolist())]
    # And each replica set keeps its place
    assert sets[order].tolist() == sets.tolist()
