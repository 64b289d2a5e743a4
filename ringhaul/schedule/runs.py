"""The run of one due time: its steps, in order, each with its tries. Stored in the ledger as JSON.

    RUNNING -> DONE      every step is done
            -> FAILED    a step failed for good; later steps do not run
    SKIPPED              a due time without a run

The job id of a step is made of the schedule, the due time and the number of the step, so that a
beat that takes over a run also continues its jobs.

A record holds no command line: what a step runs comes only from the schedule file, each time
(`step_arguments`). With write access to Redis one can repeat or skip steps, but not change them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
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
    EXIT_TOO_MANY_ERRORS,
)
from ringhaul.schedule.arrivals import Arrived
from ringhaul.schedule.record import CHARS_MAX, BadRecord, Record, is_text
from ringhaul.schedule.schedules import Schedule
from ringhaul.schedule.templates import FILES
from ringhaul.schedule.times import run_id

#: A start this much after its due time is reported as late. Beats poll every second.
LATE_MS = 5000
#: A job continues when its command has ended; the next command to follow it starts after this.
GO_ON_MS = 1000
#: Exit codes of a failure that is not due to the request: the step is tried again.
_RETRIED = frozenset({EXIT_FATAL, EXIT_CRASH})
#: The id of a step's job: see `_job`.
_JOB = re.compile(r"(.+)-(\d{8}T\d{6}Z)-(\d+)(?:r\d+)?")
#: Exit codes of a command that detached from its job, or was interrupted.
_LET_GO = frozenset({EXIT_STILL_RUNNING, EXIT_INTERRUPTED})
#: How much of a step's error is kept.
ERROR_CHARS_MAX = 500
#: Limits for reading a record: more steps or files than any schedule leads to.
_STEPS_MAX = 10_000
_FILES_MAX = 1000
_FINGERPRINT_CHARS = 16


class RunState(StrEnum):
    """The state of a run; Redis holds the value."""

    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


@dataclass(frozen=True, kw_only=True)
class Step:
    """The progress of one step of a run. `step_arguments` gives its command line."""

    command: str  #: Such as `load`; for people.
    job: str
    #: Fingerprint of the step in the schedule file when the run began: see `fingerprint`.
    fingerprint: str = ""
    takes_files: bool = False  #: The arrived files are among its arguments.
    code: int | None = None  #: Exit code of the last try that ended; below 0: a signal.
    tries: int = 0  #: Tries that ended or are under way; continuing a job does not count.
    under_way: bool = False
    restarts: int = 0  #: How often it was restarted, each time with a new job.
    started_ms: int | None = None
    ended_ms: int | None = None  #: When the step was done or given up.
    rows: int | None = None  #: Rows of its job.
    rejected: int | None = None  #: Records that its job rejected; of a verification: that differ.
    state: str = ""  #: State of its job when the step ended.
    error: str = ""  #: What its command said of the last try, if that failed: one line.


@dataclass(frozen=True, kw_only=True)
class Run:
    """The run of one due time."""

    schedule: str
    due_ms: int
    state: RunState = RunState.RUNNING
    by_hand: bool = False  #: Started by `ringhaul schedule run`.
    host: str = ""  #: "host:pid" of the beat that runs it, or ran it.
    started_ms: int | None = None  #: Time of the latest start, if a failed run was continued.
    #: Time of the first start, if a failed run was continued.
    first_ms: int | None = None
    ended_ms: int | None = None
    takeovers: int = 0  #: How often a beat took the run over from another beat.
    reason: str = ""  #: Why it failed, or was skipped.
    missed_from_ms: int | None = None  #: First of the due times that were skipped for this run.
    not_before_ms: int = 0  #: The next try waits until then.
    notified: tuple[str, ...] = ()  #: The outcome of each notification.
    files: tuple[Arrived, ...] = ()  #: The files that it loads.
    alone: bool = False  #: Its file was in a run that failed, and is tried alone.
    troubles: int = 0  #: Runs in a row, up to this run, whose failure the files did not cause.
    steps: tuple[Step, ...] = field(default_factory=tuple)

    @property
    def id(self) -> str:
        """The id of the run, such as `20261120T013000Z`."""
        return run_id(self.due_ms)

    @property
    def late_ms(self) -> int:
        """How long after its due time it first started; 0 if less than `LATE_MS`."""
        late = (self.first_ms or self.started_ms or self.due_ms) - self.due_ms
        return late if late >= LATE_MS else 0

    @property
    def files_step(self) -> int | None:
        """Index of the step that loads the arrived files; None if no step does."""
        if not self.files:
            return None
        return next((i for i, step in enumerate(self.steps) if step.takes_files), None)

    @property
    def current(self) -> int | None:
        """Index of the step to work on; None if all steps have ended."""
        return next((i for i, step in enumerate(self.steps) if step.ended_ms is None), None)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Run:
        """Read a run. Raises `BadRecord` for data that `to_json` never returns, as a record is
        untrusted input.

        The job id of a step is not read: it follows from schedule, due time and number.
        """
        record = Record(data)
        name, due_ms = record.text("schedule"), record.whole("due_ms")
        steps = record.list("steps", _STEPS_MAX)
        files = tuple(_arrived(file) for file in record.list("files", _FILES_MAX))
        try:
            state = RunState(record.text("state"))
        except ValueError:
            raise BadRecord("state is not a state of a run") from None
        return cls(
            schedule=name,
            due_ms=due_ms,
            state=state,
            by_hand=record.flag("by_hand"),
            host=record.text("host"),
            started_ms=record.maybe("started_ms"),
            first_ms=record.maybe("first_ms"),
            ended_ms=record.maybe("ended_ms"),
            takeovers=record.whole("takeovers", 0),
            reason=record.text("reason"),
            missed_from_ms=record.maybe("missed_from_ms"),
            not_before_ms=record.whole("not_before_ms", 0),
            notified=tuple(filter(is_text, record.list("notified", _STEPS_MAX))),
            files=files,
            alone=record.flag("alone"),
            troubles=record.whole("troubles", 0),
            steps=tuple(
                _step(step, name, due_ms, number, files)
                for number, step in enumerate(steps, start=1)
            ),
        )


def _arrived(data: Any) -> Arrived:
    if not isinstance(data, list) or [type(value) for value in data] != [str, int, str, str]:
        raise BadRecord("files has an entry that is not a file")
    if not all(is_text(value) for value in data if isinstance(value, str)):
        raise BadRecord("files has an entry that is not text")
    return Arrived(*data)


def _step(data: Any, schedule: str, due_ms: int, number: int, files: Sequence[Arrived]) -> Step:
    record = Record(data)
    before = record.list("arguments", CHARS_MAX)
    restarts = record.whole("restarts", 0)
    return Step(
        command=record.command(),
        job=_job(schedule, due_ms, number, restarts),
        restarts=restarts,
        fingerprint=record.text("fingerprint"),
        takes_files=record.flag("takes_files") or bool(files and files[0].path in before),
        code=record.code("code"),
        tries=record.whole("tries", 0),
        under_way=record.flag("under_way"),
        started_ms=record.maybe("started_ms"),
        ended_ms=record.maybe("ended_ms"),
        rows=record.maybe("rows"),
        rejected=record.maybe("rejected"),
        state=record.text("state"),
        error=record.text("error"),
    )


def _job(schedule: str, due_ms: int, number: int, restarts: int = 0) -> str:
    again = f"r{restarts}" if restarts else ""
    return f"{schedule}-{run_id(due_ms)}-{number}{again}"


def schedule_of(job: str) -> str:
    """Return the schedule whose step has this job id; empty if it is not of that form."""
    found = _JOB.fullmatch(job)
    return found[1] if found else ""


def step_of(job: str) -> tuple[str, str, int] | None:
    """Return schedule, run id and index of the step with this job id; None if it is not of that
    form."""
    found = _JOB.fullmatch(job)
    if found is None:
        return None
    return found[1], found[2], int(found[3]) - 1


def fingerprint(schedule: Schedule, index: int) -> str:
    """Return a hash of a step's arguments and of the time zone of its dates, to detect that the
    schedule file now has another step in its place."""
    text = json.dumps([schedule.steps[index], schedule.timing.zone.key])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_FINGERPRINT_CHARS]


def step_arguments(schedule: Schedule, run: Run, index: int) -> list[str]:
    """Return the command line of a step, from the schedule file, with its templates filled with the
    run's due time and files. Raises `ValueError` for a bad template."""
    return schedule.arguments(run.due_ms, tuple(file.path for file in run.files))[index]


def is_changed(schedule: Schedule, run: Run, index: int) -> bool:
    """Whether the step in the schedule file has changed since the run began."""
    was = run.steps[index].fingerprint
    return bool(was) and was != fingerprint(schedule, index)


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
    """Return a new run of a due time. Raises `ValueError` for a bad template."""
    schedule.arguments(due_ms, tuple(file.path for file in files))
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
            Step(
                command=step[0],
                job=_job(schedule.name, due_ms, index + 1),
                fingerprint=fingerprint(schedule, index),
                takes_files=FILES in step,
            )
            for index, step in enumerate(schedule.steps)
        ),
    )


def begin_step(run: Run, now_ms: int) -> Run:
    """Return the run with a try of its current step under way."""
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
    rejected: int | None = None,
    error: str = "",
) -> Run:
    """Return the run after the try of its current step ended with `code` (below 0: a signal).
    `error`: what the command said, if it failed; without secrets."""
    index = _current(run)
    step = replace(run.steps[index], code=code, state=job_state, under_way=False)
    step = replace(step, rows=rows, rejected=rejected)
    step = replace(step, error="" if code == EXIT_COMPLETE else error[:ERROR_CHARS_MAX])
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


def take_over(run: Run, schedule: Schedule) -> Run:
    """Return the run as another beat continues it.

    Steps that are done stay. Later steps come from the current schedule file; a step that was
    started keeps its count of tries.
    """
    run = replace(run, takeovers=run.takeovers + 1)
    if run.state is RunState.RUNNING:
        run = _with_steps_of(run, schedule, _ended(run), run.steps)
    index = run.current
    if index is None or not run.steps[index].under_way:
        return run
    step = run.steps[index]
    return _with(run, index, replace(step, tries=max(step.tries - 1, 0), under_way=False))


def try_again(run: Run, schedule: Schedule, now_ms: int, *, restart: bool = False) -> Run:
    """Return a failed run ready to continue now at the step that failed.

    From then on the steps come from the current schedule. A step whose job exists continues that
    job; its command refuses a job with another request. With `restart` the step that failed gets a
    new job. Raises `ValueError` for a bad template.

    The run gets a new start time, since it was not running at the due times since its failure.
    """
    done = max(_ended(run) - (run.state is RunState.FAILED), 0)
    first_ms = run.first_ms or run.started_ms
    again = replace(run, started_ms=now_ms, first_ms=first_ms, ended_ms=None)
    again = replace(again, reason="", not_before_ms=0, state=RunState.RUNNING)
    again = _with_steps_of(again, schedule, done, ())
    index = again.current
    if not restart or index is None:
        return again
    restarts = again.steps[index].restarts + 1
    job = _job(run.schedule, run.due_ms, index + 1, restarts)
    return _with(again, index, replace(again.steps[index], restarts=restarts, job=job))


def _ended(run: Run) -> int:
    return sum(step.ended_ms is not None for step in run.steps)


def _with_steps_of(run: Run, schedule: Schedule, done: int, before: Sequence[Step]) -> Run:
    """Return the run with its first `done` steps kept and the schedule's steps after them.
    `before`: by number, steps whose count of tries is kept."""
    steps = run.steps[:done]
    for index, new in enumerate(new_run(schedule, run.due_ms, 0, files=run.files).steps):
        if index < done:
            continue
        if index < len(run.steps) and (restarts := run.steps[index].restarts):
            job = _job(run.schedule, run.due_ms, index + 1, restarts)
            new = replace(new, restarts=restarts, job=job)
        if index < len(before):
            was = before[index]
            new = replace(new, tries=was.tries, started_ms=was.started_ms, code=was.code)
            new = replace(new, under_way=was.under_way, fingerprint=was.fingerprint)
        steps += (new,)
    run = replace(run, steps=steps)
    return replace(run, state=RunState.DONE if run.current is None else RunState.RUNNING)


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
        return f"{step.job} has {_rejected(step)}, and rejects_ok is false"
    if step.code == EXIT_TOO_MANY_ERRORS:
        return f"{step.job} has {_rejected(step)}, more than its limit allows"
    if step.code is not None and step.code < 0:
        return f"its process was ended by signal {-step.code}"
    return f"exit code {step.code}" + (f": {step.error}" if step.error else "")


def _rejected(step: Step) -> str:
    """Return how many records a step rejected, which in a verification are records that differ."""
    differ = step.command == "verify"
    if step.rejected == 1:
        return "1 record that differs" if differ else "1 rejected record"
    count = "" if step.rejected is None else f"{step.rejected:,} "
    return f"{count}records that differ" if differ else f"{count}rejected records"
