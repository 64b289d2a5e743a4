"""Run the real `ringhaul` command as a user would, in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Generous: the machine may be busy, and pytest's own timeout catches a hang.
TIMEOUT_S = 120


@dataclass(frozen=True)
class Finished:
    """Result of a finished command."""

    code: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        """Return the `summary` message of `--json`."""
        messages = [json.loads(line) for line in self.out.splitlines()]
        found = [m for m in messages if m["message_type"] == "summary"]
        assert len(found) == 1, self
        return found[0]


class Ringhaul:
    """The command with one environment: cluster, broker and state folder."""

    def __init__(self, env: Mapping[str, str], cwd: Path) -> None:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("RINGHAUL_")}
        self.env = clean | dict(env)
        self.cwd = cwd

    def argv(self, *args: object) -> list[str]:
        return [sys.executable, "-P", "-m", "producer", *map(str, args)]

    def run(self, *args: object, stdin: bytes | None = None, **env: str) -> Finished:
        """Run the command to its end."""
        done = subprocess.run(
            self.argv(*args),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            env=self.env | env,
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
