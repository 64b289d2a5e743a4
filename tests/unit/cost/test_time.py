"""Reading a value takes time in proportion to its length.

Each case is run at a length and at four times that length. Linear work takes four times as long,
quadratic work takes sixteen times as long; divide and conquer stays below ten.
"""

from __future__ import annotations

import gc
import time

import pytest

from ringhaul.cql import types
from tests.cases import each
from tests.unit.cost.worst_cases import CASES, FAMILIES, SCALAR_CASES, SCALARS, Case

GROWTH = 4
#: Between `GROWTH`, with room for a busy machine, and its square.
RATIO_MAX = 10.0
#: The shortest time counts. A case that is linear needs one try on an idle machine.
TRIES = 12
#: Shorter times are noise.
LEAST_S = 0.0005


def spent(case: Case, length: int) -> float:
    """Return the CPU seconds of a case."""
    text = case.text_of(length)
    gc.disable()  # it may look through all of pytest's objects
    try:
        start = time.process_time()
        case.read(text)
        return time.process_time() - start
    finally:
        gc.enable()


def growth_of(case: Case) -> str:
    """Return by how much a case's time grows if that is too much, or an empty text."""
    # The first time is of two: a slow one would let quadratic work pass.
    short, long = spent(case, case.length), float("inf")
    for _ in range(TRIES):
        short = min(short, spent(case, case.length))
        long = min(long, spent(case, GROWTH * case.length))
        if long < RATIO_MAX * max(short, LEAST_S):
            return ""
    took = f"{short * 1e3:.2f} ms become {long * 1e3:.2f} ms"
    return f"{case.name}: {took} of {GROWTH} times the length"


@pytest.mark.parametrize("family", FAMILIES)
def test_time_grows_with_the_length_and_no_faster(family: str) -> None:
    slow = list(filter(None, map(growth_of, FAMILIES[family])))
    assert not slow, "\n".join(slow)


@each(
    "case",
    [case for case in CASES if case.name.startswith("CSV record")],
    ids=lambda case: case.name,
)
def test_every_byte_of_a_long_record_costs_the_same(case: Case) -> None:
    plain = case._replace(text_of=lambda n: '"' + "a" * len(case.text_of(n)))
    few = many = float("inf")
    for _ in range(TRIES):
        few = min(few, spent(plain, case.length))
        many = min(many, spent(case, case.length))
        if many < 15 * max(few, LEAST_S):
            return
    pytest.fail(f"{many * 1e3:.2f} ms, and {few * 1e3:.2f} ms if they are letters")


def test_the_measure_detects_quadratic_work() -> None:
    def square(text: str) -> object:
        return sum(one == other for one in text for other in text)

    assert "square: " in growth_of(Case("square", square, lambda n: "a" * n, 400))


def test_every_case_is_in_one_family() -> None:
    assert sum(map(len, FAMILIES.values())) == len(SCALAR_CASES) + len(CASES)


def test_every_scalar_type_has_a_case() -> None:
    texts = {"ascii", "text", "varchar", "counter", "tinyint", "smallint", "timeuuid"}
    assert {*SCALARS, *texts} == set(types.SCALARS)
