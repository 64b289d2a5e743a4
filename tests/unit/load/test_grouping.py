"""Batches by example: what fills one, and how large the server takes a row to be."""

import numpy as np

from ringhaul.load.write.grouping import (
    STRIPES,
    group_rows,
    interleave,
    order_rows,
    stored_bytes,
)


def cuts(rows: list[tuple[int, int, int]]) -> list[int]:
    """Where rows of (replica set, token, size) are cut into batches."""
    sets, tokens, sizes = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return group_rows(sets.astype(np.int32), tokens, sizes).tolist()


def test_no_rows_make_no_batch() -> None:
    empty = np.zeros(0, np.int64)
    assert group_rows(empty.astype(np.int32), empty, empty).tolist() == [0]


def test_a_batch_takes_ten_partitions() -> None:
    assert cuts([(0, token, 50) for token in range(25)]) == [0, 10, 20, 25]


def test_a_batch_takes_a_hundred_rows_of_one_partition() -> None:
    assert cuts([(0, 7, 10)] * 150) == [0, 100, 150]


def test_a_batch_takes_no_more_rows_than_wanted() -> None:
    tokens = np.zeros(7, np.int64)
    for rows_max, expected in ((3, [0, 3, 6, 7]), (1, list(range(8))), (0, [0, 7])):
        found = group_rows(tokens.astype(np.int32), tokens, tokens + 10, rows_max)
        assert found.tolist() == expected
    many = np.zeros(150, np.int64)
    assert group_rows(many.astype(np.int32), many, many + 10, 120).tolist() == [0, 100, 150]


def test_a_batch_takes_at_most_five_kib() -> None:
    assert cuts([(0, 1, 2560), (0, 2, 2560), (0, 3, 1)]) == [0, 2, 3]
    assert cuts([(0, 1, 2560), (0, 2, 2561)]) == [0, 1, 2]


def test_a_row_larger_than_a_batch_goes_alone() -> None:
    assert cuts([(0, 1, 10), (0, 2, 9000), (0, 3, 10)]) == [0, 1, 2, 3]


def test_a_batch_never_spans_replica_sets() -> None:
    assert cuts([(0, 1, 10), (0, 2, 10), (4, 2, 10)]) == [0, 2, 3]


def test_rows_are_ordered_by_replica_set_then_token() -> None:
    sets = np.array([1, 0, 1, 0, 1], np.int32)
    tokens = np.array([5, 9, -3, 8, 6], np.int64)
    assert order_rows(sets, tokens).tolist() == [3, 1, 2, 0, 4]
    assert order_rows(sets[:0], tokens[:0]).tolist() == []


def test_consecutive_batches_are_of_different_parts_of_the_ring() -> None:
    # Given 40 batches of two rows of one replica set, and one of three rows of another
    cuts = np.append(np.arange(0, 81, 2), 83)
    sets = np.array([0] * 80 + [1] * 3, np.int32)
    order, cuts_then = interleave(cuts, sets)
    # Then the first batch of each 16th part goes first, then the second; the other set comes last
    firsts = [-(-part * 40 // STRIPES) for part in range(STRIPES)]
    assert order[cuts_then[:-1]].tolist()[:16] == [2 * batch for batch in firsts]
    assert order[80:].tolist() == [80, 81, 82]


def test_stored_bytes_count_what_cells_and_elements_cost_beside_their_values() -> None:
    # Given rows of 40 and 100 bound bytes in 5 cells; 30 bytes of the second are in a list
    bound, many = np.array([40, 100], np.int64), np.array([0, 30], np.int64)
    # Then each cell adds 16 bytes, each row 64, and a list of bytes counts eight times its size
    assert stored_bytes(bound, 5, many).tolist() == [40 + 80 + 64, 100 + 80 + 64 + 8 * 30]
