"""Batches by example: what fills one, and how large the server takes a row to be."""

import numpy as np

from ringhaul.load.write.grouping import Group, group_rows, order_rows, stored_bytes


def grouped(rows: list[tuple[int, int, int]]) -> list[Group]:
    sets, tokens, sizes = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return list(group_rows(sets.astype(np.int32), tokens, sizes))


def test_no_rows_make_no_batch() -> None:
    empty = np.zeros(0, np.int64)
    assert list(group_rows(empty.astype(np.int32), empty, empty)) == []


def test_a_batch_takes_ten_partitions() -> None:
    assert grouped([(0, token, 50) for token in range(25)]) == [
        Group(0, 0, 10),
        Group(0, 10, 20),
        Group(0, 20, 25),
    ]


def test_a_batch_takes_a_hundred_rows_of_one_partition() -> None:
    assert grouped([(0, 7, 10)] * 150) == [Group(0, 0, 100), Group(0, 100, 150)]


def test_a_batch_takes_five_kib_and_not_a_byte_more() -> None:
    assert grouped([(0, 1, 2560), (0, 2, 2560), (0, 3, 1)]) == [Group(0, 0, 2), Group(0, 2, 3)]
    assert grouped([(0, 1, 2560), (0, 2, 2561)]) == [Group(0, 0, 1), Group(0, 1, 2)]


def test_a_row_larger_than_a_batch_goes_alone() -> None:
    assert grouped([(0, 1, 10), (0, 2, 9000), (0, 3, 10)]) == [
        Group(0, 0, 1),
        Group(0, 1, 2),
        Group(0, 2, 3),
    ]


def test_a_batch_never_spans_replica_sets() -> None:
    assert grouped([(0, 1, 10), (0, 2, 10), (4, 2, 10)]) == [Group(0, 0, 2), Group(4, 2, 3)]


def test_rows_are_ordered_by_replica_set_then_token_and_stay_in_input_order_within() -> None:
    sets = np.array([1, 0, 1, 0, 1], np.int32)
    tokens = np.array([5, 9, -3, 9, 5], np.int64)
    assert order_rows(sets, tokens).tolist() == [1, 3, 2, 0, 4]


def test_stored_bytes_count_timestamps_and_the_expiry() -> None:
    # Given rows of 40 and 100 bound bytes (lengths among them) in 5 cells
    bound = np.array([40, 100], np.int64)
    # Then each cell adds 8 bytes of timestamp, and 8 more when it expires
    assert stored_bytes(bound, 5, ttl=False).tolist() == [40 + 40 + 24, 100 + 40 + 24]
    assert stored_bytes(bound, 5, ttl=True).tolist() == [40 + 80 + 24, 100 + 80 + 24]
