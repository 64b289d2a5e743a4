"""Reading a value takes memory in proportion to its length."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.unit.cost.worst_cases import BYTES_PER_CHARACTER_MAX, FAMILIES, SCALAR_CASES, Case

#: The cases whose memory counts, by family: all but those of plain values of scalar types.
MEASURED = {
    family: left
    for family, cases in FAMILIES.items()
    if (left := [case for case in cases if case not in SCALAR_CASES])
}


def peak_of(case: Case) -> tuple[int, int]:
    """Return the bytes that a case takes at most at a time, and its text's characters."""
    text = case.text_of(case.length)
    case.read(case.text_of(100))
    tracemalloc.start()
    try:
        case.read(text)
        return tracemalloc.get_traced_memory()[1], len(text)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("family", sorted(MEASURED))
def test_memory_grows_with_the_length_and_no_faster(family: str) -> None:
    large = []
    for case in MEASURED[family]:
        peak, length = peak_of(case)
        if not peak < case.bytes_per_character * length + 500_000:
            large.append(f"{case.name}: {peak:,} bytes for {length:,} characters")
    assert not large, "\n".join(large)


def test_the_measure_detects_quadratic_memory() -> None:
    peak, length = peak_of(Case("square", lambda t: t * len(t), lambda n: "a" * n, 4000))
    assert peak > BYTES_PER_CHARACTER_MAX * length + 500_000
