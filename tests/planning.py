"""Run a command up to its plan: in this process, against a cluster that a JSON file describes.

Everything before a job exists is the real command: its options, settings, request, files and plan,
its messages and its exit code. A plan that is accepted ends it: a job would need servers.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

import pytest

import producer.run.job
import producer.run.load
import producer.run.query
import producer.run.rows
import producer.run.statements
import producer.run.unload
import producer.services.cluster
import producer.services.start
from config.settings import Settings
from producer.cli import cli
from producer.errors import run_command
from producer.plan.plan import Plan
from ringhaul.cluster.view import ClusterView
from tasks.command_line import spelled_as
from tests.acceptance.command import STATE_VARIABLE, Finished
from tests.json_cluster import JsonCluster

#: Worker processes that share a job.
SLOTS = 2
#: A broker is configured, and nothing listens there.
BROKER = "redis://127.0.0.1:1/0"


class Accepted(BaseException):
    """A plan was made: the command would create its job now. Not an `Exception`, which a command
    reports as a defect."""


class _Opening:
    """Stands for `producer.services.cluster.Opening`."""

    def __init__(self, settings: Settings) -> None:
        self._level = settings.cluster.consistency

    def view(self) -> ClusterView:
        return JsonCluster(self._level)

    def session(self) -> Any:
        raise AssertionError("a plan needs no driver session")

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def __enter__(self) -> _Opening:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PlannedRinghaul:
    """The command with its current folder, like `tests.acceptance.command.Ringhaul`."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd

    def run(self, *args: object, stdin: bytes | None = None, **env: str) -> Finished:
        """Run the command up to its plan. Raises `Accepted` if it would create a job."""
        state = {STATE_VARIABLE: str(self.cwd / "state"), "RINGHAUL_BROKER_URL": BROKER}
        words = list(map(str, args))
        with ExitStack() as stack:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            patch.chdir(self.cwd)
            for name in [name for name in os.environ if name.startswith(("RINGHAUL_", "_RING"))]:
                patch.delenv(name)
            for name, value in (state | env).items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["ringhaul", *words])
            _without_servers(patch)
            stack.callback(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))
            stack.enter_context(spelled_as(None))
            out, err = stack.enter_context(_streams(stdin or b""))
            code = run_command(lambda: cli.main(words, prog_name="ringhaul", standalone_mode=False))
            return Finished(code, _text(out), _text(err))


def _without_servers(patch: pytest.MonkeyPatch) -> None:
    """Have commands plan without servers, and stop where they would create a job."""

    @contextmanager
    def no_worker(*_: object) -> Iterator[None]:
        yield None

    patch.setattr(producer.services.start, "enter_broker", lambda _, loaded: (loaded, None))
    patch.setattr(producer.services.start, "own_worker", no_worker)
    patch.setattr(producer.services.cluster, "Opening", _Opening)
    for module in (producer.run.load, producer.run.job):
        patch.setattr(module, "standing_ledger", lambda _: None)
        patch.setattr(module, "run_plan", _accept)
    for module in (producer.run.query, producer.run.unload, producer.run.statements):
        patch.setattr(module, "plan_slots", lambda *_, **__: SLOTS)
    patch.setattr(producer.run.rows, "open_session", lambda config: JsonCluster(config.consistency))
    patch.setattr(producer.run.rows, "close_session", lambda _: None)
    patch.setattr(producer.run.rows, "DriverView", lambda cluster: cluster)


def _accept(options: object, services: object, plan: Plan, *_: object) -> int:
    raise Accepted(plan.headline)


@contextmanager
def _streams(stdin: bytes) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Give the process this standard input, and files as standard output and error."""
    with ExitStack() as stack:
        given, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        given.write(stdin)
        given.seek(0)
        sys.stdout.flush()
        sys.stderr.flush()
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for number, (name, file) in enumerate((("stdin", given), ("stdout", out), ("stderr", err))):
            kept = os.dup(number)
            stack.callback(os.close, kept)
            os.dup2(file.fileno(), number)
            stack.callback(os.dup2, kept, number)
            stream = TextIOWrapper(
                os.fdopen(os.dup(number), "rb" if number == 0 else "wb", buffering=0),
                encoding="utf-8",
                write_through=True,
            )
            stack.callback(stream.close)
            patch.setattr(sys, name, stream)
        yield out, err


def _text(file: IO[bytes]) -> str:
    return os.pread(file.fileno(), 1 << 24, 0).decode()
