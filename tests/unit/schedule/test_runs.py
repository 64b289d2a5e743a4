"""A run's steps: which is next, when it is tried again, how the run ends."""

from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from ringhaul.schedule.arrivals import Arrived
from ringhaul.schedule.runs import (
    GO_ON_MS,
    Run,
    RunState,
    begin_step,
    end_step,
    new_run,
    take_over,
    try_again,
)
from ringhaul.schedule.schedules import Schedule
from ringhaul.schedule.timing import Timing

DUE = 1_795_138_200_000
SCHEDULE = Schedule(
    name="nightly",
    timing=Timing(zone=ZoneInfo("UTC"), every_s=600),
    steps=(("load", "{due:%Y}.csv", "-t", "k.t"), ("count", "-t", "k.t")),
    retries=2,
    backoff_s=60,
)


def a_run(schedule: Schedule = SCHEDULE, started_ms: int = DUE) -> Run:
    return new_run(schedule, DUE, started_ms)


def ended(run: Run, code: int, now_ms: int = DUE, schedule: Schedule = SCHEDULE) -> Run:
    """The run after a try of its step."""
    return end_step(begin_step(run, now_ms), code, now_ms, schedule=schedule)


def test_jobs_are_named_by_schedule_due_time_and_step() -> None:
    run = a_run()
    assert run.id == "20261120T013000Z"
    assert [step.job for step in run.steps] == [
        "nightly-20261120T013000Z-1",
        "nightly-20261120T013000Z-2",
    ]
    assert run.steps[0].arguments == ("load", "2026.csv", "-t", "k.t")


def test_a_chain_ends_when_its_last_step_is_done() -> None:
    run = a_run()
    assert run.current == 0
    run = ended(run, 0, DUE + 10)
    assert (run.state, run.current) == (RunState.RUNNING, 1)
    run = ended(run, 0, DUE + 20)
    assert (run.state, run.current) == (RunState.DONE, None)
    assert [(step.code, step.tries, step.ended_ms) for step in run.steps] == [
        (0, 1, DUE + 10),
        (0, 1, DUE + 20),
    ]


@pytest.mark.parametrize("code", [2, 3, 6])
def test_what_would_be_the_same_again_fails_at_once(code: int) -> None:
    run = ended(a_run(), code)
    assert run.state is RunState.FAILED
    assert run.reason.startswith("step 1: ")
    assert run.steps[1].tries == 0, "a failed step stops the chain"


@pytest.mark.parametrize("code", [4, 5, -9])
def test_what_may_work_later_is_tried_again_with_growing_pauses(code: int) -> None:
    run = ended(a_run(), code, DUE)
    assert (run.state, run.current, run.not_before_ms) == (RunState.RUNNING, 0, DUE + 60_000)
    run = ended(run, code, DUE + 100_000)
    assert run.not_before_ms == DUE + 100_000 + 120_000
    run = ended(run, code, DUE + 300_000)
    assert (run.state, run.steps[0].tries) == (RunState.FAILED, 3)
    # One that works after all goes on
    again = ended(ended(a_run(), code), 0)
    assert (again.current, again.not_before_ms) == (1, 0)


def test_rejected_records_fail_a_step_unless_they_are_ok() -> None:
    run = ended(a_run(), 1)
    assert (run.state, "rejects_ok" in run.reason) == (RunState.FAILED, True)
    assert ended(a_run(), 1, schedule=replace(SCHEDULE, rejects_ok=True)).current == 1


@pytest.mark.parametrize("code", [7, 130])
def test_a_command_that_let_go_of_its_job_is_followed_by_another(code: int) -> None:
    run = a_run()
    for _ in range(5):
        run = ended(run, code, DUE)
        assert (run.state, run.steps[0].tries) == (RunState.RUNNING, 0), "that is no try"
        assert run.not_before_ms == DUE + GO_ON_MS


def test_another_beat_goes_on_with_the_step_that_was_under_way() -> None:
    run = take_over(begin_step(a_run(), DUE))
    assert (run.takeovers, run.current, run.steps[0].tries) == (1, 0, 0)
    # a step that waits for its next try keeps its tries and its pause
    waiting = ended(a_run(), 4)
    taken = take_over(waiting)
    assert (taken.steps[0].tries, taken.not_before_ms) == (1, waiting.not_before_ms)
    # and a run whose steps are done has none to go on with
    done = ended(ended(a_run(), 0), 0)
    assert take_over(done).state is RunState.DONE


def test_a_run_that_failed_goes_on_where_it_failed() -> None:
    failed = ended(ended(a_run(), 0, DUE + 5), 3)
    again = try_again(failed, SCHEDULE, [], DUE + 9)
    assert (again.state, again.current, again.reason) == (RunState.RUNNING, 1, "")
    assert again.steps[0] == failed.steps[0]
    assert again.steps[1].tries == 0
    assert ended(again, 0).state is RunState.DONE
    # A step that was done with rejected records is done, too
    some = replace(SCHEDULE, rejects_ok=True)
    failed = ended(ended(a_run(), 1, schedule=some), 3, schedule=some)
    assert try_again(failed, some, [], DUE + 9).current == 1


def test_a_run_that_failed_goes_on_with_the_steps_as_they_are_now() -> None:
    failed = ended(ended(a_run(), 0), 2)
    first, second = (step.job for step in failed.steps)
    mended = replace(SCHEDULE, steps=(("load", "other", "-t", "k.t"), ("count", "-t", "k.mended")))
    again = try_again(failed, mended, [first], DUE)
    assert [step.arguments[-1] for step in again.steps] == ["k.t", "k.mended"]
    assert again.steps[0] == failed.steps[0], "what is done is done"
    assert again.steps[1].job == second
    # A job that is there stays what it is
    again = try_again(failed, mended, [first, second], DUE)
    assert [step.arguments for step in again.steps] == [step.arguments for step in failed.steps]
    # Steps may have come and gone
    longer = replace(mended, steps=(*mended.steps, ("count", "-t", "k.u")))
    assert try_again(failed, longer, [], DUE).steps[2].job == "nightly-20261120T013000Z-3"
    shorter = replace(mended, steps=mended.steps[:1])
    assert try_again(failed, shorter, [first, second], DUE).state is RunState.DONE


def test_a_run_that_is_gone_on_with_starts_anew_and_is_as_late_as_it_was() -> None:
    failed = ended(ended(a_run(started_ms=DUE + 6000), 0, DUE + 7000), 3, DUE + 8000)
    job = failed.steps[1].job
    for jobs in ([], [job]):
        again = try_again(failed, SCHEDULE, jobs, DUE + 90_000)
        assert (again.started_ms, again.late_ms) == (DUE + 90_000, 6000)
        assert [step.started_ms for step in again.steps] == [DUE + 7000, None]
        again = ended(again, 3, DUE + 95_000)
        assert again.steps[1].started_ms == DUE + 95_000
        # and so it is the next time
        third = try_again(again, SCHEDULE, jobs, DUE + 200_000)
        assert (third.started_ms, third.late_ms) == (DUE + 200_000, 6000)


def test_a_late_start_says_how_late() -> None:
    assert a_run(started_ms=DUE + 4_000).late_ms == 0, "beats look every second or so"
    assert a_run(started_ms=DUE + 90_000).late_ms == 90_000


def test_a_run_is_the_same_after_a_way_through_json() -> None:
    import json

    files = (Arrived("/in/a.csv", 3, "1", "ab"), Arrived("/in/b.csv", 4, "2", "cd"))
    loads = replace(SCHEDULE, steps=(("count",), ("load", "{files}")), arrive=("/in",))
    run = new_run(loads, DUE, DUE + 9, files=files, missed_from_ms=5)
    assert not run.alone and replace(run, alone=True) == new_run(
        loads, DUE, DUE + 9, files=files, missed_from_ms=5, alone=True
    )
    run = replace(ended(run, 0), notified=("ok",), host="h:1", alone=True, first_ms=DUE)
    assert Run.from_json(json.loads(json.dumps(run.to_json()))) == run
    assert run.files_step == 1
    assert run.steps[1].arguments == ("load", "/in/a.csv", "/in/b.csv")
    assert a_run().files_step is None
