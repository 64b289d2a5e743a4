"""The scheduler of a beat: at each look, start due runs, work on its own, take over lost ones.

Any number of beats may do this at once, on any hosts: the ledger decides which one gets a due time.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from contextlib import suppress
from itertools import chain
from pathlib import Path

from config.settings import Loaded, Settings
from producer.schedule.arrivals import ArrivalPoller
from producer.schedule.file import (
    ScheduleFile,
    file_version,
    find_schedule_file,
    read_schedule_file,
)
from producer.schedule.last_good import keep_good, last_good
from producer.schedule.run import RunWork, step_environment
from producer.schedule.text import run_line
from producer.text import count_text
from ringhaul.errors import LedgerUnavailable, UsageError
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.schedules import Beats, Claim, ScheduleBook, Standing, is_wanted
from ringhaul.schedule.arrivals import Arrived
from ringhaul.schedule.decide import Begin, Skip, decide
from ringhaul.schedule.runs import Run, RunState, new_run, take_over
from ringhaul.schedule.schedules import Schedule
from ringhaul.schedule.times import duration_text, run_id

log = logging.getLogger(__name__)

#: A look costs one short request to Redis for each schedule.
LOOK_EVERY_S = 1.0
#: Interval while a step's command runs: how soon its end is noticed.
LOOK_SOON_S = 0.1
FILE_EVERY_S = 2.0
HEARTBEAT_EVERY_S = 5.0
HEARTBEAT_TTL_MS = 20_000
#: A look ends soon if Redis is away, since the steps of runs need attention.
PATIENCE_MS = 1000
#: A beat without a file has nothing to do, which is no fault of the file.
NO_FILE = "there is no schedule file: nothing is scheduled"
#: How long the steps' commands may take to detach from their jobs when a beat stops. systemd and
#: Kubernetes give a process 30 s or more.
STOP_S = 20.0


class Beat:
    """The schedules of one file on one Redis. Call `look` repeatedly and `close` at the end."""

    def __init__(self, loaded: Loaded, ledger: Ledger) -> None:
        self._settings = loaded.settings
        self._environment = step_environment(loaded)
        self._ledger = ledger.with_patience(PATIENCE_MS)
        self._book = ScheduleBook(self._ledger.caller)
        self._beats = Beats(self._ledger.caller)
        self._host = f"{socket.gethostname()}:{os.getpid()}"
        self._file: ScheduleFile | None = None
        self._works: dict[str, RunWork] = {}
        self._looks: dict[str, ArrivalPoller] = {}
        #: When each schedule is checked next.
        self._look_due: dict[str, float] = {}
        self._file_due = self._heartbeat_due = 0.0
        self._away = self._ready = False
        self._file_problem = ""

    def look(self) -> float:
        """Check everything once; return the seconds until the next check."""
        now = time.monotonic()
        if now >= self._file_due:
            self._file_due = now + FILE_EVERY_S
            self._read_file()
        next_due = now + LOOK_EVERY_S
        try:
            if now >= self._heartbeat_due:
                self._heartbeat_due = now + HEARTBEAT_EVERY_S
                problem = "" if self._file_problem == NO_FILE else self._file_problem
                self._beats.heartbeat(self._host, HEARTBEAT_TTL_MS, problem)
            for schedule in self._schedules():
                due = self._look_due.get(schedule.name, 0.0)
                if now >= due:
                    pause_s = min(self._look_at(schedule), LOOK_EVERY_S)
                    due = self._look_due[schedule.name] = time.monotonic() + pause_s
                next_due = min(next_due, due)
            if self._away:
                self._away = False
                log.info("Redis is back")
            if not self._ready:
                self._ready = True
                schedules = 0 if self._file is None else len(self._file.schedules)
                log.info("ready: %s, %s", self._host, count_text(schedules, "schedule"))
        except LedgerUnavailable as error:
            if not self._away:
                log.warning("waiting: %s", error)
            self._away = True
            self._heartbeat_due = 0.0  # so that the next look tests whether it is back
            return LOOK_EVERY_S
        return max(next_due - time.monotonic(), 0.0)

    def close(self) -> None:
        """Stop: steps' commands detach from their jobs, and other beats continue the runs."""
        for work in self._works.values():
            work.stop()
        give_up = time.monotonic() + STOP_S
        while time.monotonic() < give_up and not all(w.stopped for w in self._works.values()):
            time.sleep(LOOK_SOON_S)
        with suppress(LedgerUnavailable):  # then the leases run out
            for work in self._works.values():
                work.release()
            self._beats.leave(self._host)
        self._works.clear()

    def _schedules(self) -> list[Schedule]:
        """Return the schedules in the file, and removed ones with a run in progress."""
        found = dict(self._file.schedules) if self._file is not None else {}
        for name, work in self._works.items():
            found.setdefault(name, work.schedule)
        return list(found.values())

    def _look_at(self, schedule: Schedule) -> float:
        """Check one schedule; return the seconds until it may be due. An error in one schedule does
        not affect others."""
        try:
            return self._look_in(schedule)
        except LedgerUnavailable:
            raise
        except Exception:
            log.exception("%s: a look failed", schedule.name)
            return LOOK_EVERY_S

    def _look_in(self, schedule: Schedule) -> float:
        name = schedule.name
        standing = self._book.look(name, schedule.timing.text)
        work = self._works.get(name)
        if work is not None:
            if work.look(standing.now_ms):
                self._settle_due_times(schedule, standing, work.run)
                return LOOK_SOON_S
            del self._works[name]
            if name in self._looks:
                self._looks[name].run_ended(work.run)
            return 0.0
        if standing.run is not None:
            if standing.lease_ms <= standing.now_ms and self._has_room():
                self._take_over(schedule)
            else:
                run = self._book.run(name, standing.run)
                self._settle_due_times(schedule, standing, run)
            return LOOK_EVERY_S
        if standing.wanted_ms is not None and not schedule.arrive and self._has_room():
            self._begin_wanted(schedule, standing, standing.wanted_ms)
            return 0.0
        if standing.paused_ms is not None:
            return LOOK_EVERY_S
        if schedule.arrive:
            return self._look_for_files(schedule, standing)
        self._settle_due_times(schedule, standing, None)
        if name in self._works:
            return 0.0
        due_ms = schedule.timing.due_after(standing.now_ms)
        return LOOK_EVERY_S if due_ms is None else (due_ms - standing.now_ms) / 1000

    def _settle_due_times(
        self, schedule: Schedule, standing: Standing, under_way: Run | None
    ) -> None:
        """Start or skip due times. `under_way`: the schedule's run in progress, if any."""
        if schedule.arrive or standing.paused_ms is not None:
            return
        settled_ms, since_ms = standing.settled_ms, standing.since_ms
        assert settled_ms is not None and since_ms is not None
        decided = decide(
            schedule,
            settled_ms=max(settled_ms, since_ms),
            now_ms=standing.now_ms,
            busy_since_ms=None if under_way is None else under_way.started_ms,
        )
        if isinstance(decided, Skip):
            self._skip(schedule, decided, settled_ms)
        elif isinstance(decided, Begin) and self._has_room():
            run = new_run(
                schedule, decided.due_ms, standing.now_ms, missed_from_ms=decided.missed_from_ms
            )
            self._claim(schedule, run, settled_ms)

    def _begin_wanted(self, schedule: Schedule, standing: Standing, wanted_ms: int) -> None:
        """Start the run that was requested on a page, as `ringhaul schedule run` does."""
        due_ms = wanted_ms // 1000 * 1000
        before = self._book.run(schedule.name, run_id(due_ms))
        skipped = before is not None and before.state is RunState.SKIPPED
        if not is_wanted(standing) or not (before is None or skipped):
            self._book.give_up_wish(schedule.name)
            return
        run = new_run(schedule, due_ms, standing.now_ms, by_hand=True)
        self._claim(schedule, run, None, before)

    def _skip(self, schedule: Schedule, passed: Skip, settled_ms: int) -> None:
        """Record skipped due times in the history, in one entry with earlier skips in a row."""
        missed_from_ms = passed.missed_from_ms
        last = next(iter(self._book.runs(schedule.name, 1)), None)
        if last is not None and (last.state, last.reason) == (RunState.SKIPPED, passed.reason):
            missed_from_ms = last.missed_from_ms or last.due_ms
        else:
            last = None
        run = Run(
            schedule=schedule.name,
            due_ms=passed.due_ms,
            state=RunState.SKIPPED,
            reason=passed.reason,
            host=self._host,
            missed_from_ms=missed_from_ms,
        )
        if self._book.pass_over(run, settled_ms=settled_ms, instead_of=last):
            log.warning("%s", run_line(run))

    def _look_for_files(self, schedule: Schedule, standing: Standing) -> float:
        """Look for arrived files and start a run if there are any; return the seconds to wait."""
        timing, now_ms = schedule.timing, standing.now_ms
        settled_ms = standing.settled_ms
        assert settled_ms is not None
        look = self._looks.get(schedule.name)
        if look is None:
            assert self._file is not None
            look = self._looks[schedule.name] = ArrivalPoller(
                self._book, schedule, self._file.folder
            )
        if look.busy:
            # A run is named after its due time in seconds, which must be after the previous run's.
            due_ms = max(now_ms // 1000 * 1000, settled_ms // 1000 * 1000 + 1000)
            found = look.result() if due_ms <= now_ms else None
            if found is None:
                return LOOK_SOON_S
            if found and self._has_room():
                self._begin_files(schedule, look, found, due_ms, now_ms)
                return 0.0
        elif now_ms >= look.next_ms and timing.in_window(now_ms):
            wait = self._book.wait(schedule.name)
            if now_ms < wait.until_ms:
                return LOOK_EVERY_S
            look.start(settled_ms, now_ms, wait.troubles)
            return LOOK_SOON_S
        return LOOK_EVERY_S

    def _begin_files(
        self,
        schedule: Schedule,
        look: ArrivalPoller,
        found: list[Arrived],
        due_ms: int,
        now_ms: int,
    ) -> None:
        log.info("%s: %s arrived", schedule.name, count_text(len(found), "file"))
        run = new_run(
            schedule, due_ms, now_ms, files=found, alone=look.alone, troubles=look.troubles
        )
        self._claim(schedule, run, look.settled_ms)

    def _claim(
        self, schedule: Schedule, run: Run, settled_ms: int | None, before: Run | None = None
    ) -> None:
        claim = self._book.claim(run, settled_ms=settled_ms, lease_ms=self._lease_ms, before=before)
        if claim is not Claim.CLAIMED:
            return  # another beat was faster
        if run.late_ms:
            log.warning(
                "%s %s: starts %s late", run.schedule, run.id, duration_text(run.late_ms / 1000)
            )
        if run.missed_from_ms is not None:
            log.warning(
                "%s %s: the due times from %s on were missed, and are skipped for this one",
                run.schedule,
                run.id,
                run_id(run.missed_from_ms),
            )
        self._works[schedule.name] = self._work(schedule, run)

    def _take_over(self, schedule: Schedule) -> None:
        run = self._book.take_over(schedule.name, self._lease_ms)
        if run is not None:
            log.warning("%s %s: taken over from %s", run.schedule, run.id, run.host)
            self._works[schedule.name] = self._work(schedule, take_over(run, schedule))

    def _work(self, schedule: Schedule, run: Run) -> RunWork:
        assert self._file is not None
        return RunWork(
            self._book,
            self._ledger,
            schedule,
            run,
            host=self._host,
            lease_ms=self._lease_ms,
            folder=self._file.folder,
            environment=self._environment,
            logs=log_folder(self._settings, schedule.name),
            state_dir=self._settings.state_dir,
        )

    def _has_room(self) -> bool:
        return len(self._works) < self._settings.schedule.runs_max

    @property
    def _lease_ms(self) -> int:
        return int(self._settings.schedule.lease_s * 1000)

    def _read_file(self) -> None:
        """Read the file again if it has changed. If it is invalid or missing, log that and keep the
        last valid one, or at the start its copy."""
        try:
            path = find_schedule_file(self._settings)
            if path is None:
                if self._file is None:
                    self._warn_of_file(NO_FILE)
                else:
                    self._warn_of_file(f"{self._file.path} is gone")
                return
            if self._file is not None and file_version(path) == self._file.version:
                self._note_problem("")
                return
            read = read_schedule_file(path)
        except (UsageError, OSError) as error:
            if self._file is None:
                self._use_copy()
            self._warn_of_file(str(error))
            return
        except Exception as error:  # no content of the file may stop runs in progress
            self._warn_of_file(
                f"the schedule file cannot be read: {type(error).__name__}: {error}", error
            )
            return
        keep_good(read, self._settings.state_dir)
        self._use(read)
        self._note_problem("")
        log.info("%s: %s", path, count_text(len(read.schedules), "schedule"))
        for warning in chain.from_iterable(read.warnings.values()):
            log.warning("%s", warning)

    def _use_copy(self) -> None:
        """Begin with the schedules of the file as it was when it could last be read."""
        path = self._settings.schedule.file or find_schedule_file(self._settings)
        copy = None if path is None else last_good(path, self._settings.state_dir)
        if copy is not None:
            self._use(copy)

    def _use(self, read: ScheduleFile) -> None:
        self._file = read
        self._look_due = {}
        self._looks = {
            name: look
            for name, look in self._looks.items()
            if read.schedules.get(name) == look.schedule
        }

    def _note_problem(self, text: str) -> None:
        """Report at once why the file cannot be read, or that it can."""
        if text != self._file_problem:
            self._file_problem, self._heartbeat_due = text, 0.0

    def _warn_of_file(self, text: str, defect: Exception | None = None) -> None:
        """Log a problem once. `defect`: an unexpected error, logged with its traceback."""
        if text != self._file_problem:
            self._note_problem(text)
            stays = "" if self._file is None else "; the schedules read before remain in force"
            log.warning("%s%s", text, stays, exc_info=defect)


def log_folder(settings: Settings, name: str) -> Path:
    """Return the folder with the logs of a schedule's runs."""
    return settings.state_dir / "schedules" / name
