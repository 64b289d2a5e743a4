"""How a client runs its commands: the program, its settings, its password."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ringhaul.client.display import Watcher, open_display
from ringhaul.client.errors import (
    COMPLETE,
    REJECTS,
    ClientError,
    CommandFailed,
    TimedOut,
    UsageError,
)
from ringhaul.client.job_result import Figures, JobResult, job_error
from ringhaul.client.process import Ended, logger, run
from ringhaul.client.progress import Progress
from ringhaul.client.results import read_result

#: The broker's name that turns off the configured broker.
NO_BROKER = "none"


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Where the command, the cluster and the broker are. Nothing of it but `--broker none` is
    written into a command line, which all users of a host can read."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)  # the URL of a broker may hold a password
    no_broker: bool = False
    password: str | None = field(default=None, repr=False)
    #: Jobs of commands that used no broker: their ledger is this user's own on this host.
    own_jobs: set[str] = field(default_factory=set, repr=False, compare=False)

    def with_own_workers(self) -> Connection:
        """Return the connection of commands that use no broker, and do their work themselves."""
        return replace(self, no_broker=True)

    def argv(self, command: str, options: Sequence[str], names: Sequence[str]) -> list[str]:
        """Return a command line."""
        broker = [f"--broker={NO_BROKER}"] if self.no_broker else []
        return [*self.command, command, *broker, *options, "--", *names]

    def run_job(
        self,
        command: str,
        options: Sequence[str],
        names: Sequence[str],
        *,
        progress: Watcher = None,
        timeout: float | None = None,
    ) -> JobResult:
        """Run a command that follows a job; return the job's result, also one with rejects.

        Raises a `JobError` if it ended in another way, and another `ClientError` without a job.
        """
        messages = self.read_messages(
            command, ["--json", *options], names, progress=progress, timeout=timeout
        )
        return messages.result()

    def read_messages(
        self,
        command: str,
        options: Sequence[str],
        names: Sequence[str],
        *,
        progress: Watcher = None,
        timeout: float | None = None,
    ) -> Messages:
        """Run a command that writes JSON Lines; return what it wrote and how it ended."""
        display = open_display(progress)
        heard = Messages(display.show, self.own_jobs if self.no_broker else set(), timeout)
        try:
            heard.ended = run(
                self.argv(command, options, names),
                self.env,
                heard.hear,
                password=self.password,
                timeout_s=timeout,
            )
        finally:
            display.close()
        return heard

    def read_document(
        self, command: str, options: Sequence[str] = (), names: Sequence[str] = ()
    ) -> tuple[Any, Ended]:
        """Run a command that writes one JSON document; return that (None: nothing), and how the
        command ended."""
        lines: list[bytes] = []
        argv = self.argv(command, options, names)
        ended = run(argv, self.env, lines.append, password=self.password)
        text = b"".join(lines).strip()
        try:
            return (json.loads(text) if text else None), ended
        except ValueError as error:
            said = text[:200].decode("utf-8", "replace")
            raise CommandFailed(f"the command printed no JSON, but {said!r}") from error


class Messages:
    """The JSON Lines of a command: the last of each kind are kept."""

    ended: Ended

    def __init__(
        self, show: Callable[[Progress], None], jobs: set[str], timeout: float | None = None
    ) -> None:
        """Pass progress to `show`, and add the job's id to `jobs`. `timeout`: the call's time
        limit in seconds."""
        self._show, self._jobs, self.timeout = show, jobs, timeout
        self._last: Figures = {}  #: the last `status` message
        self.summary: Figures | None = None
        self.plan: Figures | None = None
        self.detached: Figures | None = None
        self.job: str | None = None  #: the job that was named last

    def hear(self, line: bytes) -> None:
        """Take one line of standard output. If it is not a message, log it, like standard error."""
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            logger.info("%s", line.decode("utf-8", "replace").rstrip())
            return
        if job := message.get("job"):
            self.job = job
            self._jobs.add(job)
        match message.get("message_type"):
            case "status":
                self._last = message
                self._show(Progress.read(message))
            case "summary":
                self.summary = message
                self._show(Progress.at_end(message, self._last))
            case "plan":
                self.plan = message
            case "detached":
                self.detached = message

    def result(self) -> JobResult:
        """Return the result of the job, also one with rejects. Raises a `JobError` if it ended in
        another way, and another `ClientError` if there is none."""
        if self.summary is None or self.ended.timed_out:
            raise self.error()
        result = read_result(self.summary)
        if self.ended.exit_code in (COMPLETE, REJECTS):
            return result
        if result.exit_code in (COMPLETE, REJECTS):  # it is done; its command failed after it
            raise self.error()
        raise job_error(result, message=result.problem(), notes=self.ended.notes)

    def error(self) -> ClientError:
        """Return the error of a command that ended without a result, or was interrupted."""
        if not self.ended.timed_out:
            return self.ended.error()
        job = f"job {self.job}" if self.job else "the command, which had no job yet,"
        last = Progress.read(self._last) if self._last else None
        done = "" if last is None else f", at {last.done:.0%} and {last.rows:,} rows"
        return TimedOut(
            f"{job} took longer than {self.timeout:g} s and was interrupted{done}",
            job=self.job,
            exit_code=self.ended.exit_code,
            seconds=self.timeout,
            progress=last,
        )


def settings_env(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the variables of settings, such as `cluster.port`; those without a value are left
    out."""
    found = {}
    for key, value in settings.items():
        if value is None:
            continue
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        found[f"RINGHAUL_{key.replace('.', '_').upper()}"] = text
    return found


def command_line(command: str | os.PathLike[str] | Sequence[str] | None) -> tuple[str, ...]:
    """Return the beginning of a command line: by default `ringhaul` of this environment."""
    if command is None:
        # -P: a package of the current folder must not hide one of the command's.
        return (sys.executable, "-P", "-m", "ringhaul")
    if isinstance(command, str | os.PathLike):
        return (str(Path(command).expanduser()),)
    if not command:
        raise UsageError("command is empty: give the path of a `ringhaul`")
    return tuple(command)


def one_document(document: Any, ended: Ended) -> Any:
    """Return the document of a command. Raises its error if there is none."""
    if document is None:
        raise ended.error() if ended.exit_code else CommandFailed("the command printed nothing")
    return document
