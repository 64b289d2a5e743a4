"""Steps of a run: the next one, its retries, and how the run ends."""

import json
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from ringhaul.schedule.arrivals import Arrived
from ringhaul.schedule.record import BadRecord
from ringhaul.schedule.runs import (
    GO_ON_MS,
    Run,
    RunState,
    begin_step,
    end_step,
    is_changed,
    new_run,
    step_arguments,
    take_over,
    try_again,
)
from ringhaul.schedule.schedules import Schedule
from ringhaul.schedule.timing import Timing
from tests.cases import each

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


def record_of(run: Run) -> dict[str, Any]:
    """The run as stored in Redis."""
    found: dict[str, Any] = json.loads(json.dumps(run.to_json()))
    return found


def ended(run: Run, code: int, now_ms: int = DUE, schedule: Schedule = SCHEDULE) -> Run:
    """The run after an attempt of its step."""
    return end_step(begin_step(run, now_ms), code, now_ms, schedule=schedule)


def test_jobs_are_named_by_schedule_due_time_and_step() -> None:
    run = a_run()
    assert run.id == "20261120T013000Z"
    assert [step.job for step in run.steps] == [
        "nightly-20261120T013000Z-1",
        "nightly-20261120T013000Z-2",
    ]
    assert step_arguments(SCHEDULE, run, 0) == ["load", "2026.csv", "-t", "k.t"]


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
def test_permanent_errors_fail_at_once(code: int) -> None:
    run = ended(a_run(), code)
    assert run.state is RunState.FAILED
    assert run.reason.startswith("step 1: ")
    assert run.steps[1].tries == 0, "a failed step stops the chain"


@pytest.mark.parametrize("code", [4, 5, -9])
def test_transient_errors_are_retried_with_growing_pauses(code: int) -> None:
    run = ended(a_run(), code, DUE)
    assert (run.state, run.current, run.not_before_ms) == (RunState.RUNNING, 0, DUE + 60_000)
    run = ended(run, code, DUE + 100_000)
    assert run.not_before_ms == DUE + 100_000 + 120_000
    run = ended(run, code, DUE + 300_000)
    assert (run.state, run.steps[0].tries) == (RunState.FAILED, 3)
    # A retry that succeeds continues the run
    again = ended(ended(a_run(), code), 0)
    assert (again.current, again.not_before_ms) == (1, 0)


def test_rejected_records_fail_a_step_unless_they_are_ok() -> None:
    run = ended(a_run(), 1)
    assert (run.state, "rejects_ok" in run.reason) == (RunState.FAILED, True)
    assert ended(a_run(), 1, schedule=replace(SCHEDULE, rejects_ok=True)).current == 1


@pytest.mark.parametrize("code", [7, 130])
def test_a_command_that_detached_from_its_job_is_followed_by_another(code: int) -> None:
    run = a_run()
    for _ in range(5):
        run = ended(run, code, DUE)
        assert (run.state, run.steps[0].tries) == (RunState.RUNNING, 0), (
            "it does not count as an attempt"
        )
        assert run.not_before_ms == DUE + GO_ON_MS


def test_another_beat_continues_the_step_in_progress() -> None:
    run = take_over(begin_step(a_run(), DUE), SCHEDULE)
    assert (run.takeovers, run.current, run.steps[0].tries) == (1, 0, 0)
    # a step that waits for a retry keeps its attempts and its pause
    waiting = ended(a_run(), 4)
    taken = take_over(waiting, SCHEDULE)
    assert (taken.steps[0].tries, taken.not_before_ms) == (1, waiting.not_before_ms)
    # and a run whose steps are done is done
    done = ended(ended(a_run(), 0), 0)
    assert take_over(done, SCHEDULE).state is RunState.DONE


def test_a_failed_run_resumes_at_the_failed_step() -> None:
    failed = ended(ended(a_run(), 0, DUE + 5), 3)
    again = try_again(failed, SCHEDULE, DUE + 9)
    assert (again.state, again.current, again.reason) == (RunState.RUNNING, 1, "")
    assert again.steps[0] == failed.steps[0]
    assert again.steps[1].tries == 0
    assert ended(again, 0).state is RunState.DONE
    # A step that ended with accepted rejects is done, too
    some = replace(SCHEDULE, rejects_ok=True)
    failed = ended(ended(a_run(), 1, schedule=some), 3, schedule=some)
    assert try_again(failed, some, DUE + 9).current == 1


def test_a_failed_run_resumes_with_the_current_steps() -> None:
    failed = ended(ended(a_run(), 0), 2)
    second = failed.steps[1].job
    mended = replace(SCHEDULE, steps=(("load", "other", "-t", "k.t"), ("count", "-t", "k.mended")))
    again = try_again(failed, mended, DUE)
    assert step_arguments(mended, again, 1)[-1] == "k.mended"
    assert again.steps[0] == failed.steps[0], "what is done is done"
    assert again.steps[1].job == second
    assert not is_changed(mended, again, 1), "it uses the current schedule file"
    # Steps may have been added or removed
    longer = replace(mended, steps=(*mended.steps, ("count", "-t", "k.u")))
    assert try_again(failed, longer, DUE).steps[2].job == "nightly-20261120T013000Z-3"
    shorter = replace(mended, steps=mended.steps[:1])
    assert try_again(failed, shorter, DUE).state is RunState.DONE


def test_a_resumed_run_has_a_new_start_and_its_old_lateness() -> None:
    failed = ended(ended(a_run(started_ms=DUE + 6000), 0, DUE + 7000), 3, DUE + 8000)
    again = try_again(failed, SCHEDULE, DUE + 90_000)
    assert (again.started_ms, again.late_ms) == (DUE + 90_000, 6000)
    assert [step.started_ms for step in again.steps] == [DUE + 7000, None]
    again = ended(again, 3, DUE + 95_000)
    assert again.steps[1].started_ms == DUE + 95_000
    # and again the next time
    third = try_again(again, SCHEDULE, DUE + 200_000)
    assert (third.started_ms, third.late_ms) == (DUE + 200_000, 6000)


def test_a_late_start_says_how_late() -> None:
    assert a_run(started_ms=DUE + 4_000).late_ms == 0, "a delay of one polling interval is not late"
    assert a_run(started_ms=DUE + 90_000).late_ms == 90_000


def test_a_run_survives_json() -> None:
    files = (Arrived("/in/a.csv", 3, "1", "ab"), Arrived("/in/b.csv", 4, "2", "cd"))
    loads = replace(SCHEDULE, steps=(("count",), ("load", "{files}")), arrive=("/in",))
    run = new_run(loads, DUE, DUE + 9, files=files, missed_from_ms=5)
    assert not run.alone and replace(run, alone=True) == new_run(
        loads, DUE, DUE + 9, files=files, missed_from_ms=5, alone=True
    )
    run = replace(ended(run, 0), notified=("ok",), host="h:1", alone=True, first_ms=DUE)
    assert Run.from_json(record_of(run)) == run
    assert run.files_step == 1
    assert step_arguments(loads, run, 1) == ["load", "/in/a.csv", "/in/b.csv"]
    assert a_run().files_step is None


def test_a_stored_record_does_not_decide_what_a_step_runs() -> None:
    record = record_of(begin_step(a_run(), DUE))
    assert "arguments" not in record["steps"][0]
    # Given a record whose step has a forged command line and job
    record["steps"][0] |= {"arguments": ["flower", "--conf=x.py"], "job": "other", "command": "sh"}
    run = take_over(Run.from_json(record), SCHEDULE)
    # Then the command is that of the schedule file, and the job is the run's
    assert step_arguments(SCHEDULE, run, 0) == ["load", "2026.csv", "-t", "k.t"]
    assert (run.steps[0].command, run.steps[0].job) == ("load", "nightly-20261120T013000Z-1")
    # Steps beyond those of the file are dropped
    record["steps"] += [record["steps"][0]] * 3
    assert len(take_over(Run.from_json(record), SCHEDULE).steps) == len(SCHEDULE.steps)


def test_a_run_of_an_older_release_is_continued() -> None:
    record = record_of(begin_step(a_run(), DUE))
    for step, arguments in zip(record["steps"], SCHEDULE.steps, strict=True):
        del step["command"], step["fingerprint"], step["takes_files"]
        step["arguments"] = list(arguments)
    run = Run.from_json(record)
    assert [step.command for step in run.steps] == ["load", "count"]
    assert not is_changed(SCHEDULE, run, 0), "the previous arguments are unknown"
    assert take_over(run, SCHEDULE).steps[0].tries == 0


def test_a_run_that_is_taken_over_has_the_current_steps_of_the_file() -> None:
    run = begin_step(ended(a_run(), 0), DUE)
    changed = replace(SCHEDULE, steps=(("load", "x"), ("count", "-t", "k.u"), ("count", "-t", "k")))
    taken = take_over(run, changed)
    assert taken.steps[0] == run.steps[0], "what is done is done"
    assert step_arguments(changed, taken, 1) == ["count", "-t", "k.u"]
    assert is_changed(changed, taken, 1) and not is_changed(changed, taken, 2)
    assert not is_changed(SCHEDULE, take_over(run, SCHEDULE), 1)
    # A step that was waiting for a retry keeps its attempts
    waiting = ended(ended(a_run(), 0), 4)
    assert take_over(waiting, changed).steps[1].tries == 1
    # and nothing is left to do if the file has no more steps
    assert take_over(run, replace(SCHEDULE, steps=SCHEDULE.steps[:1])).state is RunState.DONE


@each(
    "wrong",
    [
        {"due_ms": -1},
        {"due_ms": 10**18},
        {"due_ms": True},
        {"due_ms": "1"},
        {"due_ms": None},
        {"state": "ROOT"},
        {"schedule": 3},
        {"troubles": 10**30},
        {"troubles": -1},
        {"not_before_ms": 1.5},
        {"host": "a\0b"},
        {"reason": "\ud800"},
        {"files": [["/in/a", 1, "s"]]},
        {"files": [["/in/a\0", 1, "s", "c"]]},
        {"files": [["\udcff", 1, "s", "c"]]},
        {"files": [[["/in/a"], 1, "s", "c"]]},
        {"files": "/etc/passwd"},
        {"files": [["/in/a", 1, "s", "c"]] * 1001},
        {"steps": {}},
        {"steps": [3]},
        {"steps": [{"tries": -1}]},
        {"steps": [{"code": 10**9}]},
        {"steps": [{"under_way": "yes"}]},
        {"alone": 1},
    ],
    ids=str,
)
def test_a_record_that_no_ringhaul_wrote_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadRecord):
        Run.from_json(record_of(a_run()) | wrong)
    for other in ([], None, 3, "x"):
        with pytest.raises(BadRecord):
            Run.from_json(other)


def test_the_backoff_of_many_failures_is_computed_quickly() -> None:
    assert SCHEDULE.backoff_ms(4_000_000_000) == SCHEDULE.backoff_ms(30) == 3_600_000


@each(
    ("command", "code", "rejected", "reason"),
    [
        ("load", 1, 5, "{job} has 5 rejected records, and rejects_ok is false"),
        ("load", 3, 1001, "{job} has 1,001 rejected records, more than its limit allows"),
        ("verify", 3, 1, "{job} has 1 record that differs, more than its limit allows"),
        ("verify", 1, 20, "{job} has 20 records that differ, and rejects_ok is false"),
        ("load", 3, None, "{job} has rejected records, more than its limit allows"),
    ],
)
def test_a_step_that_its_rejects_stopped_says_how_many(
    command: str, code: int, rejected: int | None, reason: str
) -> None:
    schedule = replace(SCHEDULE, steps=((command, "a.csv", "-t", "k.t"),))
    run = begin_step(new_run(schedule, DUE, DUE), DUE)
    run = end_step(run, code, DUE, schedule=schedule, job_state="STOPPED", rejected=rejected)
    assert run.state is RunState.FAILED
    assert run.reason == "step 1: " + reason.format(job=run.steps[0].job)
    assert Run.from_json(record_of(run)) == run
