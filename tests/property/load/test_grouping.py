"""Any rows: groups tile them, have one replica set each, and stay below the server's bounds."""

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
    groups = list(group_rows(sets, tokens, sizes))
    # Every row is in exactly one group, in order
    assert [row for group in groups for row in range(group.first, group.last)] == list(
        range(len(rows))
    )
    for group in groups:
        part = slice(group.first, group.last)
        # One replica set takes all of it
        assert set(sets[part].tolist()) == {group.replica_set}
        # The server warns of neither its partitions nor its size
        assert len(set(tokens[part].tolist())) <= BATCH_PARTITIONS_MAX
        assert sizes[part].sum() <= BATCH_BYTES_MAX or group.last - group.first == 1
        assert group.last - group.first <= BATCH_ROWS_MAX


@given(st.one_of(ROWS, WIDE))
def test_groups_are_no_smaller_than_the_bounds_make_them(rows: Rows) -> None:
    sets, tokens, sizes = ordered(rows)
    groups = list(group_rows(sets, tokens, sizes))
    for group, following in pairwise(groups):
        if group.replica_set != following.replica_set:
            continue
        # The group could not have taken the next row as well
        longer = slice(group.first, following.first + 1)
        too_many_rows = following.first + 1 - group.first > BATCH_ROWS_MAX
        too_many_partitions = len(set(tokens[longer].tolist())) > BATCH_PARTITIONS_MAX
        too_many_bytes = sizes[longer].sum() > BATCH_BYTES_MAX
        assert too_many_rows or too_many_partitions or too_many_bytes


@given(ROWS)
def test_rows_of_one_partition_stand_together(rows: Rows) -> None:
    sets, tokens, _ = ordered(rows)
    places = list(zip(sets.tolist(), tokens.tolist(), strict=True))
    assert places == sorted(places)
