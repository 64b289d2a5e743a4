"""Run the real `ringhaul` command as a user would, in a separate process."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.acceptance.fork_server import ForkServer

#: Generous: the machine may be busy, and pytest's own timeout catches a hang.
TIMEOUT_S = 120
PYTHON_MODULE = [sys.executable, "-P", "-m", "ringhaul"]
_fork_servers: list[ForkServer] = []
_kinds_run: set[tuple[str, ...]] = set()


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

    `run` forks it from a process that has imported the modules, which takes most of a short
    command's time; except for the first of each kind in a test process, which starts as a user's
    does. With `fresh`, all of them do.
    """

    def __init__(self, env: Mapping[str, str], cwd: Path, *, fresh: bool = False) -> None:
        self.env = _without_settings(os.environ) | dict(env)
        self.cwd = cwd
        self._fresh = fresh

    def argv(self, *args: object) -> list[str]:
        return [*PYTHON_MODULE, *map(str, args)]

    def run(self, *args: object, stdin: bytes | None = None, **env: str) -> Finished:
        """Run the command to its end."""
        argv, environment = self.argv(*args), self.env | env
        if not self._fresh and (server := _fork_server_for(argv, environment)):
            arguments = argv[len(PYTHON_MODULE) :]
            code, out, err = server.run(arguments, environment, self.cwd, stdin, TIMEOUT_S)
            return Finished(code, out.decode(), err.decode())
        done = subprocess.run(
            argv,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            env=environment,
            cwd=self.cwd,
            timeout=TIMEOUT_S,
        )
        return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())

    @contextmanager
    def started(
        self, *args: object, log: Path | None = None, **env: str
    ) -> Iterator[subprocess.Popen[str]]:
        """Run in the background; killed at the end of the block if it still runs."""
        out = log.open("w") if log else subprocess.PIPE
        process = subprocess.Popen(
            self.argv(*args),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT if log else subprocess.PIPE,
            env=self.env | env,
            cwd=self.cwd,
            text=True,
        )
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
            if log:
                out.close()  # type: ignore[union-attr]
            else:
                process.stdout.close()  # type: ignore[union-attr]
                process.stderr.close()  # type: ignore[union-attr]


def _without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    ours = ("RINGHAUL_", "_RINGHAUL_", "PYTEST_")
    return {name: value for name, value in environment.items() if not name.startswith(ours)}


def _fork_server_for(argv: Sequence[str], environment: Mapping[str, str]) -> ForkServer | None:
    """Return the process to fork a command from; None for the first command of its kind, and for
    one with environment variables that Python or a library may read on import."""
    kind = tuple(word for word in argv[len(PYTHON_MODULE) :][:2] if word.isalpha())
    if kind not in _kinds_run or argv[: len(PYTHON_MODULE)] != PYTHON_MODULE:
        _kinds_run.add(kind)
        return None
    if not _fork_servers:
        _fork_servers.append(ForkServer(_without_settings(os.environ)))
        atexit.register(_fork_servers[0].close)
    (server,) = _fork_servers
    return server if _without_settings(environment) == server.environment else None


def wait_until(true, what: str, timeout_s: float = 60.0) -> None:  # type: ignore[no-untyped-def]
    """Poll until `true()` holds; on timeout, fail with a message that names `what`."""
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline, f"waited {timeout_s} s for {what}"
        time.sleep(0.05)


def resume_at_full_speed(ringhaul: Ringhaul, job: str) -> Finished:
    """Resume a job without the `--rate` that slowed it down enough to be interrupted."""
    with ringhaul.started("resume", job, "--json") as resume:
        wait_until(lambda: ringhaul.run("throttle", job, "--off").code == 0, "it to run again")
        out, err = resume.communicate(timeout=60)
    return Finished(resume.returncode, out, err)
