"""The run of one due time: its steps, in order, each with its tries. Kept in the ledger as JSON.

    RUNNING -> DONE      every step is done
            -> FAILED    a step failed for good; those behind it do not run
    SKIPPED              a due time without a run: passed over

The job of a step is named by schedule, due time and number of the step, so that whoever goes on
with a run goes on with its jobs, too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from ringhaul.errors import (
    EXIT_CANCELLED,
    EXIT_COMPLETE,
    EXIT_CRASH,
    EXIT_FATAL,
    EXIT_INTERRUPTED,
    EXIT_REJECTS,
    EXIT_STILL_RUNNING,
)
from ringhaul.schedule.arrivals import Arrived
from ringhaul.schedule.schedules import Schedule
from ringhaul.schedule.times import run_id

#: A start this much after its due time is told as late. Beats look every second.
LATE_MS = 5000
#: A job whose command went away goes on; the next command that follows it starts after this.
GO_ON_MS = 1000
#: Nothing that was asked for is wrong: it may work the next time.
_RETRIED = frozenset({EXIT_FATAL, EXIT_CRASH})
#: The command let go of its job, or somebody interrupted the command.
_LET_GO = frozenset({EXIT_STILL_RUNNING, EXIT_INTERRUPTED})


class RunState(StrEnum):
    """Where a run stands; the value is what Redis holds."""

    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a run."""

    arguments: tuple[str, ...]
    job: str
    code: int | None = None  #: Exit code of the last try that ended; below 0: a signal.
    tries: int = 0  #: Tries that ended or are under way; going on with a job is none.
    under_way: bool = False
    started_ms: int | None = None
    ended_ms: int | None = None  #: Of the step, once it is done or given up.
    rows: int | None = None  #: Of its job.
    state: str = ""  #: Of its job, when the step ended.


@dataclass(frozen=True, kw_only=True)
class Run:
    """One due time's run."""

    schedule: str
    due_ms: int
    state: RunState = RunState.RUNNING
    by_hand: bool = False  #: Started by `ringhaul schedule run`.
    host: str = ""  #: "host:pid" of the beat that runs it, or ran it.
    started_ms: int | None = None  #: Of one that failed and is gone on with: when that began.
    #: When it started first, where it failed and was gone on with.
    first_ms: int | None = None
    ended_ms: int | None = None
    takeovers: int = 0  #: Beats that went on with it after another one.
    reason: str = ""  #: Why it failed, or was passed over.
    missed_from_ms: int | None = None  #: Due times from here on were passed over for this one.
    not_before_ms: int = 0  #: The next try waits until then.
    notified: tuple[str, ...] = ()  #: How telling somebody of it went, one for each.
    files: tuple[Arrived, ...] = ()  #: That are loaded by it.
    alone: bool = False  #: Its file was in a run that failed, and is tried alone.
    troubles: int = 0  #: Runs in a row, up to this one, that failed by no fault of their files.
    steps: tuple[Step, ...] = field(default_factory=tuple)

    @property
    def id(self) -> str:
        """Such as `20261120T013000Z`."""
        return run_id(self.due_ms)

    @property
    def late_ms(self) -> int:
        """How long after its due time it started first; 0 if that is within what is usual."""
        late = (self.first_ms or self.started_ms or self.due_ms) - self.due_ms
        return late if late >= LATE_MS else 0

    @property
    def files_step(self) -> int | None:
        """Index of the step that loads the files that have arrived; None: none does."""
        if not self.files:
            return None
        path = self.files[0].path
        return next(i for i, step in enumerate(self.steps) if path in step.arguments)

    @property
    def current(self) -> int | None:
        """Index of the step that is to be worked on; None: there is none left."""
        return next((i for i, step in enumerate(self.steps) if step.ended_ms is None), None)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Run:
        steps = tuple(
            Step(**{**step, "arguments": tuple(step["arguments"])}) for step in data["steps"]
        )
        more = {
            "state": RunState(data["state"]),
            "notified": tuple(data["notified"]),
            "files": tuple(Arrived(*file) for file in data["files"]),
            "steps": steps,
        }
        return cls(**{**data, **more})


def new_run(
    schedule: Schedule,
    due_ms: int,
    now_ms: int,
    *,
    files: Sequence[Arrived] = (),
    alone: bool = False,
    by_hand: bool = False,
    missed_from_ms: int | None = None,
    troubles: int = 0,
) -> Run:
    """The run of a due time, none of its steps begun. Raises `ValueError` for a bad template."""
    arguments = schedule.arguments(due_ms, tuple(file.path for file in files))
    return Run(
        schedule=schedule.name,
        due_ms=due_ms,
        by_hand=by_hand,
        started_ms=now_ms,
        missed_from_ms=missed_from_ms,
        files=tuple(files),
        alone=alone,
        troubles=troubles,
        steps=tuple(
            Step(arguments=tuple(step), job=f"{schedule.name}-{run_id(due_ms)}-{number}")
            for number, step in enumerate(arguments, start=1)
        ),
    )


def begin_step(run: Run, now_ms: int) -> Run:
    """The current step is being tried."""
    index = _current(run)
    step = run.steps[index]
    step = replace(step, tries=step.tries + 1, started_ms=step.started_ms or now_ms, under_way=True)
    return _with(run, index, step)


def end_step(
    run: Run,
    code: int,
    now_ms: int,
    *,
    schedule: Schedule,
    job_state: str = "",
    rows: int | None = None,
) -> Run:
    """The try of the current step has ended with an exit code (below 0: by a signal)."""
    index = _current(run)
    step = replace(run.steps[index], code=code, state=job_state, rows=rows, under_way=False)
    if code == EXIT_COMPLETE or (code == EXIT_REJECTS and schedule.rejects_ok):
        done = _with(run, index, replace(step, ended_ms=now_ms), not_before_ms=0)
        return replace(done, state=RunState.DONE) if done.current is None else done
    if code in _LET_GO:
        again = replace(step, tries=step.tries - 1)
        return _with(run, index, again, not_before_ms=now_ms + GO_ON_MS)
    if (code in _RETRIED or code < 0) and step.tries <= schedule.retries:
        return _with(run, index, step, not_before_ms=now_ms + schedule.backoff_ms(step.tries))
    failed = _with(run, index, replace(step, ended_ms=now_ms))
    return replace(failed, state=RunState.FAILED, reason=f"step {index + 1}: {_why(step)}")


def take_over(run: Run) -> Run:
    """The run, to be gone on with by another beat than the one that began it."""
    run = replace(run, takeovers=run.takeovers + 1)
    index = run.current
    if index is None or not run.steps[index].under_way:
        return run
    step = run.steps[index]
    return _with(run, index, replace(step, tries=step.tries - 1, under_way=False))


def try_again(run: Run, schedule: Schedule, jobs: Collection[str], now_ms: int) -> Run:
    """A run that failed, to be gone on with now at the step that did.

    From there on the steps are those of the schedule as it is now, but for those whose job is
    there: a job stays what it is. `jobs`: ids of those. Raises `ValueError` for a bad template.

    It starts anew: due times that passed since it failed were not beside it.
    """
    ended = sum(step.ended_ms is not None for step in run.steps)
    done = max(ended - (run.state is RunState.FAILED), 0)
    begun = {step.job: step for step in run.steps if step.job in jobs}
    steps = run.steps[:done]
    for step in new_run(schedule, run.due_ms, 0, files=run.files).steps[done:]:
        step = begun.get(step.job, step)
        steps += (replace(step, tries=0, started_ms=None, ended_ms=None),)
    first_ms = run.first_ms or run.started_ms
    again = replace(run, started_ms=now_ms, first_ms=first_ms, ended_ms=None, steps=steps)
    again = replace(again, reason="", not_before_ms=0)
    return replace(again, state=RunState.DONE if again.current is None else RunState.RUNNING)


def _current(run: Run) -> int:
    index = run.current
    assert index is not None, run
    return index


def _with(run: Run, index: int, step: Step, **more: Any) -> Run:
    steps = (*run.steps[:index], step, *run.steps[index + 1 :])
    return replace(run, steps=steps, **more)


def _why(step: Step) -> str:
    if step.code == EXIT_CANCELLED:
        return f"{step.job} was cancelled"
    if step.code == EXIT_REJECTS:
        return f"{step.job} has rejected records, and rejects_ok is false"
    if step.code is not None and step.code < 0:
        return f"its process was ended by signal {-step.code}"
    return f"exit code {step.code}"
