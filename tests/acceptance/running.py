"""Long-running processes, started as a user or a container would start them."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil
import redis

from producer.local.ports import choose_port
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.workers import Workers
from tests.acceptance.command import Process, Ringhaul, wait_until


class Running:
    """A running process and its output."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path | None = None
    ) -> None:
        self.log = log or cwd / "process.log"
        with self.log.open("w") as out:
            self.process = subprocess.Popen(
                argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )

    def says(self, text: str) -> None:
        """Wait until the text is in the output."""
        wait_until(lambda: text in self.read(), f"{text!r} in {self.log}")

    def read(self) -> str:
        assert self.process.poll() is None, self.log.read_text()
        return self.log.read_text()

    def addresses(self) -> set[tuple[str, int]]:
        """Return the addresses that the process and its children listen on."""
        me = psutil.Process(self.process.pid)
        return {
            (connection.laddr.ip, connection.laddr.port)
            for process in (me, *me.children(recursive=True))
            for connection in process.net_connections(kind="inet")
            if connection.status == psutil.CONN_LISTEN
        }

    def stops(self, grace_s: float = 40) -> None:
        """Send SIGTERM to the parent alone, and assert that it and its children end in time."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(grace_s) == 0, self.log.read_text()
        assert psutil.wait_procs(children, timeout=10)[1] == []
        text = self.log.read_text()
        assert "Traceback" not in text, text

    def kill(self) -> None:
        """Kill the process and its children."""
        me = psutil.Process(self.process.pid)
        for process in (*me.children(recursive=True), me):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()


@contextlib.contextmanager
def running(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path | None = None
) -> Iterator[Running]:
    """Run a process for the length of the block; kill it if the block did not stop it."""
    one = Running(argv, env, cwd, log)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.kill()


@contextlib.contextmanager
def running_worker(ringhaul: Ringhaul, *options: object, slots: int = 2) -> Iterator[Process]:
    """Run `ringhaul worker` with so many slots for the length of the block, which begins when the
    worker is alive. Its log is `worker.log` in the command's folder."""
    log = ringhaul.cwd / "worker.log"
    with (
        ringhaul.started("worker", "-c", slots, *options, log=log) as process,
        redis.Redis.from_url(ringhaul.env["RINGHAUL_BROKER_URL"]) as client,
    ):
        workers = Workers(Caller(client))
        wait_until(lambda: workers.slots() == slots, f"the worker; see {log}")
        yield process


def wait_for_worker(broker_url: str, log: Path) -> None:
    with redis.Redis.from_url(broker_url) as client:
        workers = Workers(Caller(client))
        wait_until(lambda: workers.slots() > 0, f"the worker; see {log}")


def free_port() -> int:
    """Return a port for a server that opens it seconds later: the system gives it to no client."""
    return choose_port(["127.0.0.1"])


def get(url: str) -> tuple[int, str]:
    """Return the status and text of a page."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def answers(port: int) -> bool:
    try:
        return get(f"http://127.0.0.1:{port}/healthcheck") == (200, "OK")
    except (OSError, urllib.error.URLError):
        return False
