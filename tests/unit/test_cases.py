"""A test that loops its cases runs all of them, and names those that fail."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tests.cases import each


def notes(error: BaseException) -> list[str]:
    return list(getattr(error, "__notes__", []))


def test_every_case_runs_and_the_failing_ones_are_named() -> None:
    seen = []

    @each(("number", "word"), [(1, "a"), (2, "b"), (3, "c")])
    def test(number: int, word: str) -> None:
        seen.append((number, word))
        assert number == 2, word

    with pytest.raises(BaseExceptionGroup, match="2 of 3 cases failed") as caught:
        test()
    assert seen == [(1, "a"), (2, "b"), (3, "c")]
    assert [notes(error) for error in caught.value.exceptions] == [
        ["case: 1, 'a'"],
        ["case: 3, 'c'"],
    ]


def test_one_failing_case_raises_its_own_error() -> None:
    @each("number", [0, 1], ids=lambda number: f"n{number}")
    def test(number: int) -> None:
        if number:
            pytest.fail("so")

    with pytest.raises(pytest.fail.Exception, match="so") as caught:
        test()
    assert notes(caught.value) == ["case: n1"]


def test_the_fixtures_of_a_test_are_left_in_its_signature() -> None:
    @each("one", [1])
    @each("two, three", [pytest.param(2, 3, id="both")])
    def test(one: int, tmp_path: Path, two: int, three: int) -> None:
        raise LookupError(one, two, three, tmp_path)

    assert list(inspect.signature(test).parameters) == ["tmp_path"]
    with pytest.raises(LookupError) as caught:
        test(tmp_path=Path("x"))
    assert caught.value.args == (1, 2, 3, Path("x"))
    assert notes(caught.value) == ["case: both", "case: 1"]


def test_two_loops_make_all_pairs() -> None:
    seen = []

    @each("one", [1, 2])
    @each("two", [3, 4])
    def test(one: int, two: int) -> None:
        seen.append((one, two))

    test()
    assert seen == [(1, 3), (1, 4), (2, 3), (2, 4)]


def test_an_interrupt_ends_the_loop() -> None:
    seen = []

    @each("number", [1, 2])
    def test(number: int) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        test()
    assert seen == [1]


def test_a_loop_that_could_not_fail_is_refused() -> None:
    def test(number: int) -> None:
        pass

    with pytest.raises(ValueError, match="no cases"):
        each("number", [])(test)
    with pytest.raises(ValueError, match="does not take"):
        each("other", [1])(test)
    with pytest.raises(ValueError, match="marks"):
        each("number", [pytest.param(1, marks=pytest.mark.alone)])(test)
    with pytest.raises(ValueError, match="2 values"):
        each(("number",), [(1, 2)])(test)
    with pytest.raises(ValueError, match="1 ids"):
        each("number", [1, 2], ids=["a"])(test)
