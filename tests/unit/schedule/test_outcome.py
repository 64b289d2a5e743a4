"""What the end of a run means for its files."""

from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from ringhaul.schedule.arrivals import ALONE, FAILED, LOADED, Arrived, Remembered, remember
from ringhaul.schedule.outcome import TOGETHER_TRIES, files_end
from ringhaul.schedule.runs import Run, begin_step, end_step, new_run
from ringhaul.schedule.schedules import Schedule
from ringhaul.schedule.timing import Timing

SCHEDULE = Schedule(
    name="drop",
    timing=Timing(zone=ZoneInfo("UTC"), every_s=10),
    arrive=("/in",),
    steps=(("count", "-t", "k.t"), ("load", "{files}", "-t", "k.t"), ("count", "-t", "k.t")),
)
A = Arrived("/in/a", 1, "t", "ca")
B = Arrived("/in/b", 2, "t", "cb")


def after(
    codes: list[int],
    files: tuple[Arrived, ...] = (A, B),
    *,
    troubles: int = 0,
    known: dict[str, Remembered] | None = None,
) -> tuple[Run, dict[str, str]]:
    """A run whose steps ended with these codes, and the states of its files afterwards."""
    run = new_run(SCHEDULE, 1000, 1000, files=files, troubles=troubles)
    for code in codes:
        run = end_step(begin_step(run, 1000), code, 1000, schedule=SCHEDULE)
        run, remembered = files_end(run, known or {}, 7)
    return run, {path: file.state for path, file in remembered.items()}


def alone(*files: Arrived) -> dict[str, Remembered]:
    """The stored state of files that have to be tried alone."""
    failed = remember(files, "r", 5, loaded=False)
    return {path: replace(file, state=ALONE) for path, file in failed.items()}


def test_files_are_remembered_when_their_step_is_done() -> None:
    assert after([0])[1] == {}
    run, states = after([0, 0], troubles=2)
    assert (run.troubles, states) == (0, {A.path: LOADED, B.path: LOADED})
    # Later steps change neither their state nor the count of failed runs
    for code in (0, 3, 4):
        run, states = after([0, 0, code], troubles=2)
        assert (run.troubles, states) == (0, {})


@pytest.mark.parametrize("codes", [[0, 2], [2], [0, 1], [0, 6], [3]])
def test_a_permanent_failure_is_blamed_on_the_files(codes: list[int]) -> None:
    """Also that of a step before their load: otherwise they would be retried forever."""
    assert after(codes)[1] == {A.path: ALONE, B.path: ALONE}
    run, states = after(codes, (A,), troubles=2)
    assert (run.troubles, states) == (0, {A.path: FAILED})


@pytest.mark.parametrize("codes", [[0, 4], [4], [0, 5], [0, -9], [-15]])
def test_an_outage_is_not_blamed_on_the_files(codes: list[int]) -> None:
    for files in ((A, B), (A,)):
        run, states = after(codes, files, troubles=TOGETHER_TRIES - 2)
        assert (run.troubles, states) == (TOGETHER_TRIES - 1, {})


def test_after_a_few_outages_files_are_tried_alone_and_none_is_given_up() -> None:
    for files in ((A, B), (A,)):
        run, states = after([0, 4], files, troubles=TOGETHER_TRIES - 1)
        assert run.troubles == TOGETHER_TRIES
        assert set(states.values()) == {ALONE}
    for troubles in (1, 5, 10_000):
        run, states = after([0, 4], (A,), troubles=troubles, known=alone(A))
        assert (run.troubles, states) == (troubles + 1, {A.path: ALONE})
        assert SCHEDULE.backoff_ms(run.troubles) <= 3_600_000


def test_a_file_that_fails_alone_while_others_load_is_blamed() -> None:
    run, states = after([0, 4], (A,), troubles=0, known=alone(A))
    assert states == {A.path: FAILED}
    assert run.troubles == 1, "in case it was an outage: the next file is not blamed"
    # A file that changed since counts as a new one
    changed = A._replace(stamp="t2")
    assert after([0, 4], (changed,), troubles=0, known=alone(A))[1] == {}


def test_a_run_without_files_changes_no_states() -> None:
    steps = (("count", "-t", "k.t"),)
    run = new_run(replace(SCHEDULE, arrive=(), steps=steps), 1000, 1000)
    run = end_step(begin_step(run, 1000), 4, 1000, schedule=SCHEDULE)
    assert files_end(run, {}, 7) == (run, {})
