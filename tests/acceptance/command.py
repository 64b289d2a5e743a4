"""Run the real `ringhaul` command as a user would, in a separate process."""

from __future__ import annotations

import atexit
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.acceptance.fork_server import Forked, ForkServer

#: Generous: the machine may be busy, and pytest's own timeout catches a hang.
TIMEOUT_S = 120
PYTHON_MODULE = [sys.executable, "-P", "-m", "ringhaul"]
#: A command in the background.
Process = subprocess.Popen[str] | Forked
#: Commands that stay: they start as an operator starts them.
SERVICES = ("worker", "beat", "flower", "metrics")
STATE_VARIABLE = "RINGHAUL_STATE_DIR"
#: The state folders of all commands so far.
STATE_FOLDERS: set[Path] = set()
#: The one for the environment of the tests, once there is one; and those of `forking`.
_fork_servers: list[ForkServer] = []
_more_fork_servers: list[ForkServer] = []
#: The kinds of commands that this process has started as a user does.
_kinds_run: set[tuple[str, ...]] = set()
#: The folder with a file for each kind that a process of this run has started so, if there is one.
_kinds_folders: list[Path] = []


@dataclass(frozen=True)
class Finished:
    """Result of a finished command."""

    code: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        """Return the `summary` message of `--json`."""
        found = self.messages("summary")
        assert len(found) == 1, self
        return found[0]

    def messages(self, kind: str) -> list[dict[str, Any]]:
        """Return the messages of `--json` of one type."""
        messages = [json.loads(line) for line in self.out.splitlines()]
        return [m for m in messages if m["message_type"] == kind]


class Ringhaul:
    """The command with one environment: cluster, broker and state folder.

    It is forked from a process that has imported the modules, which takes most of a short
    command's time; except for services, and for the first of each kind in a run of the tests, which
    start as a user's does. With `fresh`, all of them do.
    """

    def __init__(self, env: Mapping[str, str], cwd: Path, *, fresh: bool = False) -> None:
        self.env = _without_settings(os.environ) | dict(env)
        if STATE_VARIABLE in self.env:
            STATE_FOLDERS.add(Path(self.env[STATE_VARIABLE]))
        self.cwd = cwd
        self._fresh = fresh

    def argv(self, *args: object) -> list[str]:
        return [*PYTHON_MODULE, *map(str, args)]

    def run(self, *args: object, stdin: bytes | None = None, **env: str) -> Finished:
        """Run the command to its end."""
        arguments, environment = list(map(str, args)), self.env | env
        if server := self._fork_server(_kind(arguments), environment):
            code, out, err = server.run(arguments, environment, self.cwd, stdin, TIMEOUT_S)
            return Finished(code, out.decode(), err.decode())
        done = subprocess.run(
            self.argv(*args),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            env=environment,
            cwd=self.cwd,
            timeout=TIMEOUT_S,
        )
        return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())

    def run_script(self, script: str, **env: str) -> Finished:
        """Run a script of bash, in which `ringhaul` is this command, to its end."""
        environment = self.env | env
        server = self._fork_server(("bash",), environment)
        words = server.client if server else PYTHON_MODULE
        done = subprocess.run(
            ["bash", "-c", bash_function(words) + script],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            cwd=self.cwd,
            timeout=TIMEOUT_S,
            pass_fds=[server.control] if server else [],
        )
        return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())

    def _fork_server(
        self, kind: tuple[str, ...], environment: Mapping[str, str]
    ) -> ForkServer | None:
        """Return the process to fork a command from; None for the first command of its kind, and
        for one with environment variables that Python or a library may read on import."""
        if self._fresh or _is_first(kind):
            return None
        wanted = _without_settings(environment)
        for server in (*_fork_servers, *_more_fork_servers):
            if server.environment == wanted:
                return server
        if _fork_servers or wanted != _without_settings(os.environ):
            return None
        _fork_servers.append(ForkServer(wanted))
        atexit.register(_fork_servers[0].close)
        return _fork_servers[0]

    @contextmanager
    def started(self, *args: object, log: Path | None = None, **env: str) -> Iterator[Process]:
        """Run in the background; killed at the end of the block if it still runs."""
        process = self._start(list(map(str, args)), self.env | env, log)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def _start(
        self, arguments: list[str], environment: Mapping[str, str], log: Path | None
    ) -> Process:
        """Start the command; its output goes to a file, or else to pipes."""
        server = None
        if arguments[0] not in SERVICES:
            server = self._fork_server(_kind(arguments), environment)
        if server is not None:
            return server.start_piped(arguments, environment, self.cwd, log)
        with open(log or os.devnull, "w") as file:
            return subprocess.Popen(
                self.argv(*arguments),
                stdin=subprocess.DEVNULL,
                stdout=file if log else subprocess.PIPE,
                stderr=subprocess.STDOUT if log else subprocess.PIPE,
                env=environment,
                cwd=self.cwd,
                text=True,
            )


@contextmanager
def forking(ringhaul: Ringhaul) -> Iterator[None]:
    """Fork commands with the environment of this one, too, for the length of the block: it has
    variables that a library may read on import, or is that of another host."""
    server = ForkServer(_without_settings(ringhaul.env))
    _more_fork_servers.append(server)
    try:
        yield
    finally:
        _more_fork_servers.remove(server)
        server.close()


def _kind(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the words that name a command."""
    return tuple(word for word in arguments[:2] if word.isalpha())


def share_kinds(folder: Path) -> None:
    """Share which kinds of commands have run with the other test processes that use this folder."""
    folder.mkdir(exist_ok=True)
    _kinds_folders[:] = [folder]


def _is_first(kind: tuple[str, ...]) -> bool:
    """Return whether no command of this kind has run, and note that one does."""
    if kind in _kinds_run:
        return False
    _kinds_run.add(kind)
    try:
        for folder in _kinds_folders:
            (folder / f"kind {' '.join(kind)}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    ours = ("RINGHAUL_", "_RINGHAUL_", "PYTEST_")
    return {name: value for name, value in environment.items() if not name.startswith(ours)}


def bash_function(words: Sequence[str] = PYTHON_MODULE) -> str:
    """Return the beginning of a script of bash in which `ringhaul` stands for these words, and a
    pipe fails if one of its commands does."""
    return f'ringhaul() {{ {shlex.join(words)} "$@"; }}; set -o pipefail; '


def wait_until(true, what: str, timeout_s: float = 60.0) -> None:  # type: ignore[no-untyped-def]
    """Poll until `true()` holds; on timeout, fail with a message that names `what`."""
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline, f"waited {timeout_s} s for {what}"
        time.sleep(0.05)


def resume_at_full_speed(ringhaul: Ringhaul, job: str) -> Finished:
    """Resume a job without the `--rate` that slowed it down enough to be interrupted."""
    with ringhaul.started("resume", job, "--json") as resume:

        def is_unlimited() -> bool:
            ended = resume.poll() is not None
            return ringhaul.run("throttle", job, "--off").code == 0 or ended

        wait_until(is_unlimited, "it to run again")
        out, err = resume.communicate(timeout=60)
    return Finished(resume.returncode, out, err)
