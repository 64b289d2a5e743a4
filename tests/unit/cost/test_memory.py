"""Reading a value takes memory in proportion to its length."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.unit.cost.worst_cases import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_memory_grows_with_the_length_and_no_faster(case: Case) -> None:
    text = case.text_of(case.length)
    case.read(case.text_of(100))
    tracemalloc.start()
    try:
        case.read(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < case.bytes_per_character * len(text) + 500_000
