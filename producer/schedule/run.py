"""Work on one run: execute its steps one after the other, each as a `ringhaul` command.

Steps are child processes of the beat or command that works on the run, not Celery tasks: a step
waits for the units of its job, and a worker that waited would occupy a slot that the units need;
with a single slot, for ever. A child gets the job id from the run, so that it continues a job that
an earlier child created.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from config.names import ENV_CONFIG, env_name
from config.secrets import mask
from config.settings import Loaded
from producer.schedule.notify import send_notification
from producer.schedule.steps import run_arguments
from producer.schedule.text import run_document, run_line
from producer.startup import STEP_ERROR_VARIABLE, STEP_VARIABLE
from ringhaul.errors import EXIT_CRASH, UsageError
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobMissing
from ringhaul.ledger.schedules import ScheduleBook, Wait
from ringhaul.ledger.states import JobState
from ringhaul.plain_text import as_line
from ringhaul.run_folder import run_folder
from ringhaul.schedule.arrivals import Remembered
from ringhaul.schedule.outcome import files_end
from ringhaul.schedule.runs import ERROR_CHARS_MAX, Run, RunState, begin_step, end_step, is_changed
from ringhaul.schedule.schedules import Notify, Schedule
from ringhaul.schedule.times import duration_text

log = logging.getLogger(__name__)

#: How often a lease is renewed in its length.
RENEWALS = 3
#: How many logs of a schedule's runs are kept.
LOGS_KEPT = 20


class RunWork:
    """A run whose lease we hold. Call `look` repeatedly; it never blocks for long."""

    def __init__(
        self,
        book: ScheduleBook,
        ledger: Ledger,
        schedule: Schedule,
        run: Run,
        *,
        host: str,
        lease_ms: int,
        folder: Path,
        environment: Mapping[str, str],
        logs: Path | None,
        state_dir: Path,
    ) -> None:
        """`run`: claimed or taken over. `host`: name of this worker, for people. `folder`: where
        the steps' relative paths start. `environment`: see `step_environment`. `logs`: folder for
        the steps' output; None: it goes to this process's own output. `state_dir`: the state
        folder."""
        self._state_dir = state_dir
        self._book, self._ledger, self._schedule = book, ledger, schedule
        self.run = replace(run, host=host)
        self._lease_ms, self._folder, self._logs = lease_ms, folder, logs
        self._environment = environment
        self._child: subprocess.Popen[bytes] | None = None
        self._notifying: threading.Thread | None = None
        self._outcomes: list[str] = []  # results of notifications
        self._renew_due = time.monotonic() + self._renew_every_s
        #: Whether the run has changed since it was last saved.
        self._unsaved = True
        #: Redis has on its disk that the due time was taken.
        self._durable = False
        self._files: Mapping[str, Remembered] = {}
        self._error = ""  #: see `_error_file`

    @property
    def schedule(self) -> Schedule:
        """The schedule of the run, as it was when we started or took over the run."""
        return self._schedule

    @property
    def log_file(self) -> Path | None:
        """The log of the steps' output."""
        return None if self._logs is None else self._logs / f"{self.run.id}.log"

    def look(self, now_ms: int) -> bool:
        """Do what is due now; return False if the run has ended or now belongs to another beat.

        `now_ms`: the server's clock. Raises `LedgerUnavailable`; then call it again later.
        """
        if not self._keep():
            self._let_go()
            return False
        if self._child is not None:
            code = self._child.poll()
            if code is None:
                return True
            self._step_ended(code, now_ms)
        if self.run.state is not RunState.RUNNING:
            return self._end(now_ms)
        if now_ms >= self.run.not_before_ms:
            self._begin(now_ms)
        return True

    def stop(self) -> None:
        """Make the step's command detach from its job and exit soon; another beat can continue."""
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)

    @property
    def stopped(self) -> bool:
        """Whether no command of the run is running."""
        return self._child is None or self._child.poll() is not None

    def release(self) -> None:
        """End the lease, so that others can take over the run at once. Raises
        `LedgerUnavailable`."""
        self._forget_error()
        self._book.keep(self.run, lease_ms=0, files=self._files)

    @property
    def _renew_every_s(self) -> float:
        return self._lease_ms / RENEWALS / 1000

    def _keep(self) -> bool:
        """Save changes and renew the lease when due; return False if the run is no longer ours."""
        if self._unsaved:
            mine = self._book.keep(self.run, lease_ms=self._lease_ms, files=self._files)
            self._unsaved, self._files = not mine, {}
        elif time.monotonic() >= self._renew_due:
            mine = self._book.renew(self.run, self._lease_ms)
        else:
            return True
        self._renew_due = time.monotonic() + self._renew_every_s
        return mine

    def _let_go(self) -> None:
        log.warning("%s: another beat has taken it over", self._name)
        self.stop()

    def _begin(self, now_ms: int) -> None:
        """Record the attempt at the current step, then start its command."""
        index = self.run.current
        assert index is not None
        try:
            arguments = run_arguments(self._schedule, self.run, index, self._folder)
        except UsageError as error:  # a template took bad values from the run's record
            reason = f"step {index + 1}: {error}"
            self.run = replace(self.run, state=RunState.FAILED, reason=reason)
            self._unsaved = True
            return
        if not self.run.steps[index].under_way:  # else Redis went away before its command started
            self.run = begin_step(self.run, now_ms)
            self._unsaved = True
        if not self._keep():
            self._let_go()
            return
        step = self.run.steps[index]
        if index == 0 and not self._durable:
            self._ledger.make_durable()  # a due time that was taken outlives a crash of Redis
            self._durable = True
        arguments += ["--job-id", step.job, "--on-interrupt", "detach"]
        if is_changed(self._schedule, self.run, index):
            log.warning("%s: %s", self._name, _changed(index))
        log.info("%s: step %d, try %d: %s", self._name, index + 1, step.tries, step.job)
        try:
            with _opened(self.log_file) as out:
                if out is not None:
                    out.write(f"--- step {index + 1}, try {step.tries}: {step.job}\n".encode())
                    out.flush()
                self._child = subprocess.Popen(
                    [sys.executable, "-P", "-m", "ringhaul", *arguments],
                    cwd=self._folder,
                    env={
                        **self._environment,
                        STEP_VARIABLE: self.run.schedule,
                        STEP_ERROR_VARIABLE: self._error_file(),
                    },
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    # Signals to our terminal must reach this process only.
                    start_new_session=True,
                )
        except OSError as error:  # too many processes, or no room for the log
            log.error("%s: could not start the command: %s", self._name, error)
            self._step_ended(EXIT_CRASH, now_ms, f"could not start the command: {error}")

    def _error_file(self) -> str:
        """Return the path of a new file for the error of the step's command. Raises `OSError`."""
        self._forget_error()
        folder = run_folder(self._state_dir)
        number, self._error = tempfile.mkstemp(prefix="step-", dir=folder)
        os.close(number)
        return self._error

    def _forget_error(self) -> None:
        if self._error:
            with suppress(OSError):
                os.unlink(self._error)
        self._error = ""

    def _read_error(self) -> str:
        """Return what the step's command ended with; empty if it said nothing. The text is without
        secrets: the command has hidden all that it knows."""
        text = ""
        if self._error:
            with suppress(OSError), open(self._error, encoding="utf-8", errors="replace") as file:
                text = file.read(ERROR_CHARS_MAX)
        self._forget_error()
        return as_line(mask(text))

    def _step_ended(self, code: int, now_ms: int, error: str = "") -> None:
        index = self.run.current
        assert index is not None
        step = self.run.steps[index]
        state, rows, rejected = "", None, None
        error = error or self._read_error()
        paths = [file.path for file in self.run.files]
        known = self._book.remembered(self.run.schedule, paths)
        try:
            status = self._ledger.status(step.job)
        except JobMissing:
            pass
        else:
            state, rows = str(status.state), status.totals.get("rows")
            # A job that its rejects stopped keeps rejects of unfinished units apart.
            stopped = status.live.rejected if status.state is JobState.STOPPED else 0
            rejected = status.totals.get("rejected", 0) + stopped
            if status.state is JobState.FAILED:
                error = error or as_line(status.last_error or "")
        run = end_step(
            self.run,
            code,
            now_ms,
            schedule=self._schedule,
            job_state=state,
            rows=rows,
            rejected=rejected,
            error=error,
        )
        ended = run.steps[index].ended_ms is not None
        if run.state is RunState.FAILED and is_changed(self._schedule, run, index):
            run = replace(run, reason=f"{run.reason}; {_changed(index)}")
        if ended:
            run, self._files = files_end(run, known, now_ms)
        self.run, self._child, self._unsaved = run, None, True
        if not ended:
            pause_s = (self.run.not_before_ms - now_ms) / 1000
            log.warning(
                "%s: step %d: code %d, retry in %.0f s: %s",
                *(self._name, index + 1, code, pause_s, error or "it gave no reason"),
            )

    def _end(self, now_ms: int) -> bool:
        """Send notifications, then end the run. A crash in between sends them twice."""
        if self._notifying is None:
            self.run = replace(self.run, ended_ms=self.run.ended_ms or now_ms)
            self._unsaved = True
            self._notifying = threading.Thread(target=self._notify, name="notify", daemon=True)
            self._notifying.start()
            return True
        if self._notifying.is_alive():
            return True
        run = replace(self.run, notified=tuple(self._outcomes))
        wait = self._wait(now_ms)
        mine = self._book.keep(run, lease_ms=self._lease_ms, files=self._files, end=True, wait=wait)
        if mine:
            self.run = run
            done = run.state is RunState.DONE
            log.log(logging.INFO if done else logging.ERROR, "%s", run_line(run))
            if wait is not None and wait.troubles:
                pause = duration_text((wait.until_ms - now_ms) / 1000)
                log.warning("%s: not caused by its files: none is tried for %s", self._name, pause)
        self._forget_old_logs()
        return False

    def _wait(self, now_ms: int) -> Wait | None:
        """Return how long the next files wait, if the run's files did not cause its failure."""
        troubles = self.run.troubles
        if not self.run.files:
            return None
        if not troubles:
            return Wait(0, 0)
        return Wait(troubles, now_ms + self._schedule.backoff_ms(troubles))

    def _notify(self) -> None:
        end = "success" if self.run.state is RunState.DONE else "failure"
        document = run_document(self.run, str(self.log_file or ""))
        for notify in self._schedule.notify:
            if end in notify.on:
                self._outcomes.append(self._notify_one(notify, document))

    def _notify_one(self, notify: Notify, document: dict[str, object]) -> str:
        try:
            outcome = send_notification(notify, document, self._environment)
        except Exception as error:  # whatever it is, the run ends
            outcome = type(error).__name__
        if outcome != "ok":
            log.error("%s: notification failed: %s", self._name, outcome)
        return outcome

    def _forget_old_logs(self) -> None:
        if self._logs is not None and self._logs.is_dir():
            for path in sorted(self._logs.glob("*.log"))[:-LOGS_KEPT]:
                path.unlink(missing_ok=True)

    @property
    def _name(self) -> str:
        return f"{self.run.schedule} {self.run.id}"


def _changed(index: int) -> str:
    return f"step {index + 1} was changed in the schedule file after the run started"


def step_environment(loaded: Loaded) -> dict[str, str]:
    """Return the environment of a run's steps and notifications: these settings, with relative
    paths made absolute, since a step runs in another folder."""
    environment = loaded.environment()
    if loaded.config_file is not None:
        environment[ENV_CONFIG] = str(loaded.config_file)
    for key, origin in loaded.origins.items():
        value: Any = loaded.settings
        for name in key.split("."):
            value = getattr(value, name)
        if (origin == "flag" or origin.startswith("env ")) and isinstance(value, Path):
            environment[env_name(key)] = str(value)
    return environment


@contextmanager
def _opened(path: Path | None) -> Iterator[IO[bytes] | None]:
    """Open the log of a run for appending; yield None if the process's own output is used."""
    if path is None:
        yield None
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("ab") as file:
        yield file
