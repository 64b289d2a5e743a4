"""The transition table is closed, and the end state follows from two counts."""

import pytest

from ringhaul.ledger.states import (
    RESUMABLE,
    SETTLED,
    TRANSITIONS,
    JobState,
    final_state,
    may_move,
)


def test_every_state_has_its_moves_listed() -> None:
    assert set(TRANSITIONS) == set(JobState)


def test_resume_is_the_only_way_back_to_running() -> None:
    back = {state for state, after in TRANSITIONS.items() if JobState.RUNNING in after}
    assert back == RESUMABLE


def test_an_ended_job_moves_nowhere_but_to_running() -> None:
    for state in set(JobState) - {JobState.RUNNING}:
        assert TRANSITIONS[state] <= {JobState.RUNNING}


def test_a_job_that_ended_by_itself_is_settled() -> None:
    ends = {final_state(rejected_records=r, quarantined_units=b) for r in (0, 1) for b in (0, 1)}
    assert ends == SETTLED


@pytest.mark.parametrize(
    ("rejected", "bad", "state"),
    [
        (0, 0, JobState.COMPLETE),
        (7, 0, JobState.PARTIAL),
        (0, 1, JobState.QUARANTINED),
        (7, 1, JobState.QUARANTINED),
    ],
)
def test_final_state(rejected: int, bad: int, state: JobState) -> None:
    assert final_state(rejected_records=rejected, quarantined_units=bad) is state


def test_a_state_may_repeat_and_success_is_final() -> None:
    assert may_move(JobState.RUNNING, JobState.RUNNING)
    assert not may_move(JobState.COMPLETE, JobState.RUNNING)
    assert not may_move(JobState.CANCELLED, JobState.COMPLETE)
