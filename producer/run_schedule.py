"""Run `ringhaul schedule`: the file says what there is, the ledger what has become of it."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from config.settings import Loaded
from producer.ledgers import reading_ledger
from producer.options import settle
from producer.schedule_beat import LOOK_SOON_S, log_folder
from producer.schedule_file import ScheduleFile, need_schedule_file
from producer.schedule_look import ArrivalLook
from producer.schedule_run import RunWork, step_environment
from producer.schedule_words import run_document, run_line, step_text, time_text
from ringhaul.errors import EXIT_COMPLETE, EXIT_FATAL, EXIT_INTERRUPTED, UsageError
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.schedules import Beats, Claim, ScheduleBook, Standing
from ringhaul.schedule.runs import Run, RunState, new_run, try_again
from ringhaul.schedule.schedules import Schedule
from ringhaul.schedule.times import run_id, to_ms


class _Opened(NamedTuple):
    loaded: Loaded
    file: ScheduleFile
    ledger: Ledger
    book: ScheduleBook


@contextmanager
def _opened(config_file: Path | None) -> Iterator[_Opened]:
    """The file, checked, and the ledger. Raises `UsageError` for a file that is not right."""
    file = need_schedule_file(settle({}, config_file).settings)
    with reading_ledger(config_file) as ledger:
        loaded = settle({}, config_file)  # an embedded broker is among the settings by now
        yield _Opened(loaded, file, ledger, ScheduleBook(ledger.caller))


def print_schedules(config_file: Path | None, *, as_json: bool) -> int:
    """Run `schedule list`; the exit code."""
    with _opened(config_file) as opened:
        beats = Beats(opened.ledger.caller).alive()
        rows = [_describe(opened, schedule) for schedule in opened.file.schedules.values()]
    if as_json:
        document = {"file": str(opened.file.path), "beats": beats, "schedules": rows}
        print(json.dumps(document, indent=2))
        return EXIT_COMPLETE
    print(f" {'SCHEDULE':<32} {'STATE':<8} {'NEXT DUE':<20}  {'LAST RUN':<17} STATE    WHEN")
    for row in rows:
        last = row["last"] or {}
        print(
            f" {row['name']:<32} {row['state']:<8} {row['next_due'] or '-':<20}  "
            f"{last.get('run', '-'):<17} {last.get('state', '-'):<8} {row['when']}"
        )
    if not beats:
        print("no beat is up: start one with `ringhaul beat`", file=sys.stderr)
    return EXIT_COMPLETE


def _describe(opened: _Opened, schedule: Schedule) -> dict[str, Any]:
    standing = opened.book.standing(schedule.name)
    last = next(iter(opened.book.runs(schedule.name, 1)), None)
    timing = schedule.timing
    next_ms = timing.due_after(standing.now_ms)
    return {
        "name": schedule.name,
        "state": _state(standing),
        "when": f"{timing.text}: {', '.join(schedule.arrive)}" if schedule.arrive else timing.text,
        "next_due": None if standing.paused_ms is not None else time_text(next_ms),
        "paused_since": time_text(standing.paused_ms),
        "running": standing.run,
        "last": None if last is None else run_document(last),
    }


def _state(standing: Standing) -> str:
    if standing.run is not None:
        return "running"
    return "waiting" if standing.paused_ms is None else "paused"


def print_history(config_file: Path | None, name: str, limit: int, *, as_json: bool) -> int:
    """Run `schedule history`; the exit code."""
    with _opened(config_file) as opened:
        opened.file.schedule(name)
        runs = opened.book.runs(name, limit)
        logs = log_folder(opened.loaded.settings, name)
    if as_json:
        print(json.dumps([run_document(run, _log(logs, run)) for run in runs], indent=2))
        return EXIT_COMPLETE
    for run in runs:
        print(run_line(run))
        for step in run.steps:
            rows = "" if step.rows is None else f"  {step.rows:,} rows"
            tries = f"  {step.tries} tries" if step.tries > 1 else ""
            print(f"    {step_text(step):<12} {step.job}  {step.state or '-'}{rows}{tries}")
    return EXIT_COMPLETE


def _log(logs: Path, run: Run) -> str:
    """The log of a run, where it is on this host."""
    path = logs / f"{run.id}.log"
    return str(path) if path.is_file() else ""


def set_paused(config_file: Path | None, name: str, *, paused: bool) -> int:
    """Run `schedule pause` or `schedule resume`; the exit code."""
    with _opened(config_file) as opened:
        schedule = opened.file.schedule(name)
        if paused:
            opened.book.pause(name)
            print(f"{name} is paused: `ringhaul schedule resume {name}`", file=sys.stderr)
        else:
            opened.book.resume(name)
            due_ms = schedule.timing.due_after(opened.book.standing(name).now_ms)
            print(f"{name} is due next at {time_text(due_ms) or '-'}", file=sys.stderr)
    return EXIT_COMPLETE


def run_now(config_file: Path | None, name: str, due: datetime | None) -> int:
    """Run `schedule run`; the exit code."""
    with _opened(config_file) as opened:
        schedule = opened.file.schedule(name)
        standing = opened.book.standing(name)
        due_ms = to_ms(due.replace(tzinfo=UTC)) if due else standing.now_ms // 1000 * 1000
        run, before = _run_of(opened, schedule, due_ms, standing.now_ms, chosen=due is not None)
        if run is None:
            return EXIT_COMPLETE
        lease_ms = int(opened.loaded.settings.schedule.lease_s * 1000)
        claim = opened.book.claim(run, settled_ms=None, lease_ms=lease_ms, before=before)
        if claim is not Claim.CLAIMED:
            raise UsageError(
                f"{name} is not run: a run of it is not over, or has just begun; see "
                f"`ringhaul schedule history {name}`"
            )
        return _work(opened, schedule, run, lease_ms)


def _run_of(
    opened: _Opened, schedule: Schedule, due_ms: int, now_ms: int, *, chosen: bool
) -> tuple[Run | None, Run | None]:
    """The run to work on, and the one that the due time has already. None: there is none to do."""
    if schedule.arrive:
        if chosen:
            raise UsageError(f"--due: {schedule.name} is about files, and has no due times")
        look = ArrivalLook(opened.book, schedule, opened.file.folder)
        look.look(now_ms, failed_too=True)
        time.sleep(schedule.settle_s)
        found = look.look(now_ms, failed_too=True)
        if not found:
            print(f"{schedule.name}: no file that is not loaded yet", file=sys.stderr)
            return None, None
        return new_run(schedule, due_ms, now_ms, files=found, by_hand=True), None
    before = opened.book.run(schedule.name, run_id(due_ms))
    if before is None or before.state is RunState.SKIPPED:
        return new_run(schedule, due_ms, now_ms, by_hand=True), before
    if before.state is RunState.DONE:
        print(f"{run_line(before)}: not done again", file=sys.stderr)
        return None, None
    return try_again(before), before


def _work(opened: _Opened, schedule: Schedule, run: Run, lease_ms: int) -> int:
    """Work on a run to its end, with what its steps say on this command's own output."""
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
    )
    print(f"{run.schedule} {run.id}: due {time_text(run.due_ms)}", file=sys.stderr)
    try:
        while work.look(opened.book.standing(schedule.name).now_ms):
            time.sleep(LOOK_SOON_S)
    except KeyboardInterrupt:
        work.stop()
        while not work.stopped:
            time.sleep(LOOK_SOON_S)
        work.release()
        print("let go of: a beat goes on with the run", file=sys.stderr)
        return EXIT_INTERRUPTED
    print(run_line(work.run), file=sys.stderr)
    return EXIT_COMPLETE if work.run.state is RunState.DONE else EXIT_FATAL
