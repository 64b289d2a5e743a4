"""Actions of `ringhaul schedule`: the file defines the schedules, the ledger has their state."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from config.settings import Loaded
from producer.interrupts import taking_interrupts
from producer.options.connection import LedgerPlace
from producer.outputs.stdout import json_text
from producer.request.next_command import next_command
from producer.schedule.arrivals import ArrivalPoller, odd_text
from producer.schedule.file import ScheduleFile, need_schedule_file
from producer.schedule.last_good import load_schedule_file
from producer.schedule.overview import look_at_schedules
from producer.schedule.run import RunWork, step_environment
from producer.schedule.scheduler import LOOK_SOON_S, log_folder
from producer.schedule.text import run_document, run_line, run_notes, step_text, time_text
from producer.services.embedded import enter_broker
from producer.services.ledger import READ_PATIENCE_MS, settings_of
from producer.tables import Column, screen_width, table_lines
from producer.text import count_text
from ringhaul.errors import (
    EXIT_COMPLETE,
    EXIT_FATAL,
    EXIT_INTERRUPTED,
    EXIT_STILL_RUNNING,
    EXIT_USAGE,
    LedgerUnavailable,
    SourceMissing,
    Transient,
    UsageError,
)
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobMissing
from ringhaul.ledger.schedules import Claim, ScheduleBook
from ringhaul.ledger.states import JobState
from ringhaul.schedule.runs import Run, RunState, new_run, take_over, try_again
from ringhaul.schedule.schedules import Schedule
from ringhaul.schedule.times import read_due, run_id
from tasks.connect import open_ledger


class _Opened(NamedTuple):
    loaded: Loaded  #: with the embedded broker, if there is one
    file: ScheduleFile
    ledger: Ledger
    book: ScheduleBook


@contextmanager
def _opened(place: LedgerPlace, *, to_run: bool = False) -> Iterator[_Opened]:
    """Open the schedule file and the ledger. Raises `UsageError` if the file is invalid, and there
    is no copy of an earlier version or it is `to_run`."""
    loaded = settings_of(place)
    file = None if to_run else load_schedule_file(loaded.settings)
    file = file or need_schedule_file(loaded.settings)
    with ExitStack() as stack:
        loaded, _ = enter_broker(stack, loaded)
        ledger = open_ledger(loaded.settings, READ_PATIENCE_MS)
        yield _Opened(loaded, file, ledger, ScheduleBook(ledger.caller))


def print_schedules(place: LedgerPlace, *, as_json: bool) -> int:
    """Run `schedule list`; return the exit code: a usage error if the file is invalid and its last
    version is shown."""
    with _opened(place) as opened:
        overview = look_at_schedules(opened.ledger, opened.file)
    code = EXIT_USAGE if overview.problem else EXIT_COMPLETE
    if as_json:
        print(json_text(overview.to_json(), indent=2))
        return code
    columns = (
        Column("SCHEDULE", short=20, ends=True),
        Column("STATE"),
        Column("NEXT DUE"),
        Column("LAST RUN", goes=2),
        Column("LAST END"),
        Column("WHEN", goes=1, short=12),
    )
    cells = [
        (
            *(row.name, row.shown_state, time_text(row.next_ms) or "-"),
            "-" if row.last is None else f"{row.last.id} {row.last.state}",
            row.last_end,
            row.when,
        )
        for row in overview.rows
    ]
    for line in table_lines(columns, cells, width=screen_width(sys.stdout)):
        print(line)
    for row in overview.rows:
        if row.health.failures and (ended := row.health.ended) is not None:
            since = time_text(row.health.success_ms)
            print(f" {row.name} {ended.id} failed: {ended.reason or 'its record is gone'}")
            print(f" {row.name} last success: {since or 'never'}")
    for warning in chain.from_iterable(row.warnings for row in overview.rows):
        print(f"warning: {warning}", file=sys.stderr)
    for problem in overview.problems:
        print(f"warning: {problem}", file=sys.stderr)
    if not overview.beats:
        print("no beat is up: start one with `ringhaul beat`", file=sys.stderr)
    return code


def print_history(place: LedgerPlace, name: str, limit: int, *, as_json: bool) -> int:
    """Run `schedule history`; return the exit code."""
    with _opened(place) as opened:
        opened.file.schedule(name)
        runs = opened.book.runs(name, limit)
        logs = log_folder(opened.loaded.settings, name)
    if as_json:
        print(json_text([run_document(run, _log(logs, run)) for run in runs], indent=2))
        return EXIT_COMPLETE
    for run in runs:
        print(run_line(run))
        for step in run.steps:
            rows = "" if step.rows is None else f"  {count_text(step.rows, 'row')}"
            rows += f"  {step.rejected:,} rejected" if step.rejected else ""
            tries = f"  {step.tries} tries" if step.tries > 1 else ""
            print(f"    {step_text(step)}  {step.job}  {step.state or 'no job'}{rows}{tries}")
            if step.error and step.error not in run.reason:
                print(f"        last error: {step.error}")
        for note in run_notes(run):
            print(f"    {note}")
        if path := _log(logs, run):
            print(f"    log {path}")
    return EXIT_COMPLETE


def _log(logs: Path, run: Run) -> str:
    """Return the path of a run's log; empty if it is not on this host."""
    path = logs / f"{run.id}.log"
    return str(path) if path.is_file() else ""


def set_paused(place: LedgerPlace, name: str, *, paused: bool) -> int:
    """Run `schedule pause` or `schedule resume`; return the exit code."""
    with _opened(place) as opened:
        schedule = opened.file.schedule(name)
        if paused:
            opened.book.pause(name)
            print(
                f"{name} is paused; to resume: `ringhaul schedule resume {name}`", file=sys.stderr
            )
        else:
            opened.book.resume(name)
            due_ms = schedule.timing.due_after(opened.book.standing(name).now_ms)
            print(f"{name} is next due at {time_text(due_ms) or '-'}", file=sys.stderr)
    return EXIT_COMPLETE


def acknowledge(place: LedgerPlace, name: str) -> int:
    """Run `schedule ack`; return the exit code."""
    with _opened(place) as opened:
        opened.file.schedule(name)
        ended = opened.book.health(name).ended
        if ended is None or ended.state is not RunState.FAILED:
            state = "no run has ended" if ended is None else f"its last run is {ended.state}"
            raise UsageError(f"{name}: there is nothing to acknowledge: {state}")
        opened.book.acknowledge(name, ended.id)
    print(
        f"{run_line(ended)}: acknowledged; its alerts are silent until the next run ends",
        file=sys.stderr,
    )
    return EXIT_COMPLETE


def run_now(
    place: LedgerPlace,
    name: str,
    due: str | None,
    *,
    earlier: str | None = None,
    restart: bool = False,
) -> int:
    """Run `schedule run`; return the exit code.

    `due`: a due time as the user wrote it. `earlier`: the id of a run that failed. `restart`: its
    step that failed begins with a new job.
    """
    if due is not None and earlier is not None:
        raise UsageError("--due and --run both name a run: give one of them")
    if restart and due is None and earlier is None:
        raise UsageError("--restart starts a step of a failed run over: name the run with --run")
    with _opened(place, to_run=True) as opened:
        schedule = opened.file.schedule(name)
        lease_ms = int(opened.loaded.settings.schedule.lease_s * 1000)
        due_ms = None if due is None else _due_of(opened, schedule, due)
        if earlier is not None:
            due_ms = _known_run(opened, name, earlier).due_ms
        left = opened.book.take_over(name, lease_ms)
        if left is not None:
            print(f"{name} {left.id}: {left.host} abandoned it: continuing", file=sys.stderr)
            code = _work(opened, schedule, take_over(left, schedule), lease_ms)
            if code not in (EXIT_COMPLETE, EXIT_FATAL) or due_ms in (None, left.due_ms):
                return code
        standing = opened.book.standing(name)
        chosen_ms = standing.now_ms // 1000 * 1000 if due_ms is None else due_ms
        by_files = schedule.arrive and earlier is None
        if by_files:
            if due_ms is not None:
                raise UsageError(f"--due: {name} waits for files and has no due times")
            # Beats compare due times: this one must be after the previous run's.
            chosen_ms = max(chosen_ms, (standing.settled_ms or 0) // 1000 * 1000 + 1000)
            run, before = _run_of_arrived(opened, schedule, chosen_ms, standing.now_ms), None
        else:
            run, before = _run_of(opened, schedule, chosen_ms, standing.now_ms, restart=restart)
        if run is None:
            return EXIT_COMPLETE
        # A beat may find the same files at the same time: only the first run claims them.
        settled_ms = (standing.settled_ms or 0) if by_files else None
        claim = opened.book.claim(run, settled_ms=settled_ms, lease_ms=lease_ms, before=before)
        if claim is not Claim.CLAIMED:
            raise UsageError(
                f"{name} is not run: a run of it is still in progress or has just started; see "
                f"`ringhaul schedule history {name}`. An abandoned run can be continued after "
                f"{lease_ms // 1000} s (schedule.lease_s)"
            )
        return _work(opened, schedule, run, lease_ms)


def _due_of(opened: _Opened, schedule: Schedule, text: str) -> int:
    """Return a due time that the user wrote. Raises `UsageError` for a text that is none, and for a
    time that has not come: the run of that time would then be skipped without a word."""
    try:
        due_ms = read_due(text, schedule.timing.zone)
    except ValueError as error:
        raise UsageError(f"--due: {error}") from error
    if due_ms > opened.book.standing(schedule.name).now_ms:
        raise UsageError(
            f"--due: {time_text(due_ms)} has not come; a beat makes that run then. "
            f"`ringhaul schedule run {schedule.name}` makes another now"
        )
    return due_ms


def _known_run(opened: _Opened, name: str, run: str) -> Run:
    """Return a run by its id as the user wrote it. Raises `UsageError` if there is none."""
    found = opened.book.run(name, run)
    if found is None:
        listed = next_command(f"schedule history {name}")
        raise UsageError(f"--run: {name} has no run {run!r}: `{listed}` lists its last runs")
    return found


def _run_of_arrived(opened: _Opened, schedule: Schedule, due_ms: int, now_ms: int) -> Run | None:
    """Return a run of the files that have arrived; None if there are none."""
    look = ArrivalPoller(opened.book, schedule, opened.file.folder)
    troubles = opened.book.wait(schedule.name).troubles  # only beats pause after these
    look.look(now_ms, failed_too=True)
    time.sleep(schedule.settle_s)
    found = look.look(now_ms, failed_too=True)
    if not found:
        _refuse_odd(schedule, look)
        print(f"{schedule.name}: no new files to load", file=sys.stderr)
        return None
    return new_run(
        schedule, due_ms, now_ms, files=found, alone=look.alone, by_hand=True, troubles=troubles
    )


def _run_of(
    opened: _Opened, schedule: Schedule, due_ms: int, now_ms: int, *, restart: bool
) -> tuple[Run | None, Run | None]:
    """Return the run of a due time to work on (None: nothing to do), and its existing run, if
    any."""
    before = opened.book.run(schedule.name, run_id(due_ms))
    if before is not None and before.state is RunState.FAILED:
        return _again(opened.ledger, schedule, before, now_ms, restart=restart), before
    if restart:
        state = "does not exist" if before is None else f"is {before.state}"
        raise UsageError(
            f"--restart: {schedule.name} {run_id(due_ms)} {state}, and only a failed run can "
            "start over"
        )
    if before is None or (before.state is RunState.SKIPPED and not schedule.arrive):
        return new_run(schedule, due_ms, now_ms, by_hand=True), before
    print(f"{run_line(before)}: not run again", file=sys.stderr)
    return None, None


def _again(ledger: Ledger, schedule: Schedule, before: Run, now_ms: int, *, restart: bool) -> Run:
    """Return the failed run, ready to continue. Raises `UsageError` if the job of its step has
    ended: the step would only report that again; with `restart`, if that job has not ended."""
    run = try_again(before, schedule, now_ms)
    if run.current is None:
        return run
    job, state = run.steps[run.current].job, None
    with suppress(JobMissing):
        state = ledger.status(job).state
    place = f"{run.schedule} {run.id}: step {run.current + 1}: {job} is {state}"
    if restart:
        if state is JobState.RUNNING:
            cancel = next_command(f"cancel {job}")
            raise UsageError(f"{place}: end it first with `{cancel}`, or leave out --restart")
        return try_again(before, schedule, now_ms, restart=True)
    if state in (JobState.STOPPED, JobState.CANCELLED):
        resume = next_command(f"resume {job}")
        raise UsageError(
            f"{place}: run `{resume}` first, then this command again; if its input was repaired, "
            "start the step over with --restart"
        )
    if state is JobState.PARTIAL and not schedule.rejects_ok:
        raise UsageError(
            f"{place}: it has rejected records (`{next_command(f'errors {job}')}`); set "
            "rejects_ok = true in the schedule to continue with the next step"
        )
    return run


def _refuse_odd(schedule: Schedule, look: ArrivalPoller) -> None:
    """Raise the first error that kept the look from finding files, if any."""
    for path, error in look.odd.items():
        if isinstance(error, Transient):
            raise error
        raise SourceMissing(f"{schedule.name}: {odd_text(path, error)}")


def _work(opened: _Opened, schedule: Schedule, run: Run, lease_ms: int) -> int:
    """Work on a run until it ends, with its steps' output on ours; return the exit code."""
    work = RunWork(
        opened.book,
        opened.ledger,
        schedule,
        run,
        host=f"{socket.gethostname()}:{os.getpid()}",
        lease_ms=lease_ms,
        folder=opened.file.folder,
        environment=step_environment(opened.loaded),
        logs=None,
        state_dir=opened.loaded.settings.state_dir,
    )
    print(f"{run.schedule} {run.id}: due {time_text(run.due_ms)}", file=sys.stderr)
    away = False
    with taking_interrupts() as interrupts:
        while not interrupts:
            try:
                if not work.look(opened.book.standing(schedule.name).now_ms):
                    break
                away = False
            except LedgerUnavailable as error:  # the step's command waits for it too
                if not away:
                    print(f"waiting: {error}", file=sys.stderr)
                away = True
            time.sleep(LOOK_SOON_S)
        else:
            _let_go(work)
            return EXIT_INTERRUPTED
    print(run_line(work.run), file=sys.stderr)
    ends = {RunState.DONE: EXIT_COMPLETE, RunState.RUNNING: EXIT_STILL_RUNNING}
    return ends.get(work.run.state, EXIT_FATAL)


def _let_go(work: RunWork) -> None:
    """Stop working on a run and let a beat or another command continue it."""
    work.stop()
    while not work.stopped:
        time.sleep(LOOK_SOON_S)
    with suppress(LedgerUnavailable):  # then the lease runs out
        work.release()
    again = f"`ringhaul schedule run {work.run.schedule}`"
    print(f"stopped: a beat continues the run, or {again}", file=sys.stderr)
