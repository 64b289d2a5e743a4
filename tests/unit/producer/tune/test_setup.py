"""The values that are tried."""

from __future__ import annotations

import pytest

from producer.tune.setup import MIB, Knob, Setup, counts_of_workers, make_space


@pytest.mark.parametrize(
    ("cores", "start", "most", "fit", "counts"),
    [
        (2, 2, None, 100, [1, 2, 3]),
        (8, 8, None, 100, [2, 4, 8, 12]),
        (8, 5, None, 100, [2, 4, 5, 8, 12]),
        (1, 1, None, 100, [1, 2]),
        (8, 2, 2, 100, [1, 2]),
        (8, 8, None, 8, [2, 4, 8]),
        (64, 64, None, 20, [16, 20]),
        (2, 2, 1, 100, [1]),
    ],
)
def test_numbers_of_workers(
    cores: int, start: int, most: int | None, fit: int, counts: list[int]
) -> None:
    assert counts_of_workers(cores, start, most, fit) == counts


def test_the_settings_as_they_are_are_among_the_values() -> None:
    start = Setup(strategy="single", workers=5, batch_rows=7, in_flight=100, unit_bytes=12345)
    space = make_space(start, worker_counts=[1, 2], sample_bytes=10 * MIB)
    for knob in Knob:
        assert start.value(knob) in space[knob]
        assert len(set(space[knob])) == len(space[knob])


def test_a_unit_is_tried_only_if_each_process_gets_two_of_a_sample() -> None:
    space = make_space(Setup(workers=2), worker_counts=[2], sample_bytes=17 * MIB)
    assert space[Knob.UNIT_BYTES] == [0, MIB, 4 * MIB]


def test_the_adaptive_bound_stands_where_it_usually_ends() -> None:
    space = make_space(Setup(workers=2), worker_counts=[2], sample_bytes=MIB)
    assert space[Knob.IN_FLIGHT] == [64, 256, 0, 2048]
    assert space[Knob.BATCH_ROWS] == [2, 5, 0]


def test_standing_workers_have_one_number() -> None:
    assert make_space(Setup(), worker_counts=[], sample_bytes=MIB)[Knob.WORKERS] == [0]
