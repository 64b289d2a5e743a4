"""Checks of inputs, outputs and hosts for commands, run from a worker's parent process.

The parent must not block on a file system: a dead network mount would stall all its children. So
each check is a separate process that writes to a file, which the parent polls:
`ringhaul.storage.preflight` for inputs and outputs, `tasks.host` for the host.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import tasks.host
from config.settings import Settings
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.host_requests import HostRequests
from ringhaul.ledger.workers import Worker
from ringhaul.storage import preflight
from tasks.storage_settings import storage_access

log = logging.getLogger(__name__)

#: How often commands' requests are fetched. A command waits for this, so it is short. Each fetch
#: costs Redis one SMEMBERS of a key that is mostly absent, some 11 us of CPU. So a large fleet
#: fetches more rarely: all workers together `ASKS_PER_S_MAX` times a second, 2 % of Redis's
#: capacity, until each pause is so long that commands would take a worker for a dead one.
ASK_EVERY_S = 0.25
ASK_EVERY_S_MAX = 1.5
ASKS_PER_S_MAX = 2000
#: How often a running check is polled.
WATCH_EVERY_S = 0.05
#: Pause after Redis did not answer: longer, since each attempt blocks the parent.
AWAY_S = 5.0
#: Time limit of a check: of paths only, and with URLs, whose packages take a second to import.
PATHS_S = 2.5
URLS_S = 10.0
#: Time limit of a report about the host; it normally ends before (`tasks.host.__main__`).
HOST_S = 10.0
#: Checks that run at a time; further commands wait for their turn, within their own time limit.
RUNNING_MAX = 4
#: How many names of started checks are remembered, the latest ones.
_KNOWN_MAX = 1000
HOST_SCRIPT = str(Path(tasks.host.__file__).with_name("__main__.py"))


def pause_between_polls_s(workers: int) -> float:
    """Return how long each of this many living workers pauses between two polls."""
    return min(max(ASK_EVERY_S, workers / ASKS_PER_S_MAX), ASK_EVERY_S_MAX)


class HostChecks:
    """The preflight checks of one worker. Call `poll` often; it never waits for a check."""

    def __init__(
        self, caller: Caller, me: Worker, settings: Settings, environment: Mapping[str, str]
    ) -> None:
        """`environment`: the variables of the checks, and so their settings."""
        self.ask_every_s = ASK_EVERY_S
        self._requests = HostRequests(caller)
        self._me = me
        self._access = asdict(storage_access(settings))
        self._environment = environment
        self._known: dict[str, None] = {}
        self._running: list[_Check] = []
        #: Killed processes that have not exited yet: on a dead mount, not until it comes back.
        self._leaving: list[subprocess.Popen[bytes]] = []
        self._ask_at = 0.0

    @property
    def busy(self) -> bool:
        """Whether a check is running: then poll again in `WATCH_EVERY_S`."""
        return bool(self._running)

    def poll(self) -> None:
        """Start requested checks and send finished results. Raises as `Caller.script` does."""
        now = time.monotonic()
        self._leaving = [process for process in self._leaving if process.poll() is None]
        for one in list(self._running):
            seen = one.seen(now)
            if seen is not None:
                self._running.remove(one)
                self._leaving.append(one.kill())
                self._requests.answer(one.name, self._me, seen)
        if now < self._ask_at or len(self._running) >= RUNNING_MAX:
            return
        self._ask_at = now + AWAY_S
        wanted = self._requests.wanted(self._known)
        self._ask_at = now + self.ask_every_s
        for name, request in wanted.items():
            self._known[name] = None
            if not set(request["queues"]) & set(self._me.queues):
                continue  # units of this job never come here
            try:
                self._running.append(self._start(name, request))
                first: dict[str, Any] = {"begun": True}
            except OSError as error:  # no room for its files, or no more processes
                first = {"failed": str(error)}
            self._requests.answer(name, self._me, first)
        while len(self._known) > _KNOWN_MAX:
            self._known.pop(next(iter(self._known)))

    def _start(self, name: str, request: dict[str, Any]) -> _Check:
        """Start a check. A request for a report about the host has an empty `what`, which is what
        workers of earlier versions check."""
        env = self._environment
        if request.get("host"):
            return _Check(name, HOST_SCRIPT, {}, ("-P",), HOST_S, _host_answer, env)
        what = request["what"] | {"access": self._access}
        if preflight.needs_packages(what):
            return _Check(name, preflight.__file__, what, ("-P",), URLS_S, _places_answer, env)
        # Paths need no site-packages, and leaving them out is twice as fast.
        return _Check(name, preflight.__file__, what, ("-I", "-S"), PATHS_S, _places_answer, env)

    def end(self) -> None:
        """Kill the running checks."""
        self._leaving += [one.kill() for one in self._running]
        self._running.clear()


#: Messages of a check, and its exit code (None: it was given up) -> the answer.
Reader = Callable[[Sequence[dict[str, Any]], int | None], dict[str, Any]]


class _Check:
    """A check, running in a process."""

    def __init__(
        self,
        name: str,
        script: str,
        what: dict[str, Any],
        flags: Sequence[str],
        limit_s: float,
        read: Reader,
        environment: Mapping[str, str],
    ) -> None:
        """Run `script`, which reads `what` and Python's path and writes lines of JSON, for at most
        `limit_s`. Raises `OSError`."""
        self.name = name
        self._read = read
        self._give_up_at = time.monotonic() + limit_s
        # Files instead of pipes, so that neither process can block the other.
        self._out: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `kill`
        with tempfile.TemporaryFile() as request:
            request.write(json.dumps(what | {"sys_path": sys.path}).encode())
            request.seek(0)
            self._process = subprocess.Popen(
                [sys.executable, *flags, script],
                env=environment,
                stdin=request,
                stdout=self._out,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def seen(self, now: float) -> dict[str, Any] | None:
        """Return the result of the check; None while it is running."""
        code = self._process.poll()
        if code is None and now < self._give_up_at:
            return None
        self._out.seek(0)
        lines = self._out.read().splitlines()
        return self._read([json.loads(line) for line in lines], code)

    def kill(self) -> subprocess.Popen[bytes]:
        """Kill the process without waiting for it to exit, and return it."""
        self._process.kill()
        self._out.close()
        return self._process


def _places_answer(messages: Sequence[dict[str, Any]], code: int | None) -> dict[str, Any]:
    if messages and "wrong" in messages[-1]:
        return dict(messages[-1])
    if code is None:
        return {"stuck": messages[-1]["at"] if messages else ""}
    return {"failed": f"the check ended with {code}"}


def _host_answer(messages: Sequence[dict[str, Any]], code: int | None) -> dict[str, Any]:
    """Return the report; its missing parts took too long."""
    if not messages and code:
        return {"failed": f"the check ended with {code}"}
    return {"host": {name: part for message in messages for name, part in message.items()}}
