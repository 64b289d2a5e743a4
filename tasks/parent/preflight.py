"""Looks at inputs and outputs for commands, from a worker's parent process.

The parent must not wait for a file system: a dead network mount would hold up all its children. So
each look is a process of its own (`ringhaul.storage.preflight`) that writes into a file, which the
parent reads from time to time.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from typing import IO, Any

from config.settings import Settings
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.looks import Looks
from ringhaul.ledger.workers import Worker
from ringhaul.storage import preflight
from tasks.connect import storage_access

log = logging.getLogger(__name__)

#: How often commands' requests are asked for. A command waits for that, so it is short; each time
#: costs Redis one SMEMBERS of a key that most often is not there: with a thousand workers some 4 %
#: of what it can do.
ASK_EVERY_S = 0.25
#: How often a look that is on its way is looked at.
WATCH_EVERY_S = 0.05
#: After a Redis that did not answer: not as often as that, each try holds the parent up.
AWAY_S = 5.0
#: How long a look may take: of paths, and with URLs, whose packages take a second to import.
PATHS_S = 2.5
URLS_S = 10.0
#: Looks at a time; more commands than that wait for their turn, within their bound.
RUNNING_MAX = 4
#: Names of looks that were begun here, of which only the last matter.
_KNOWN_MAX = 1000


class Looking:
    """The looks of one worker. `poll` it often; it never waits for a look."""

    def __init__(self, caller: Caller, me: Worker, settings: Settings) -> None:
        self._looks = Looks(caller)
        self._me = me
        self._access = asdict(storage_access(settings))
        self._known: dict[str, None] = {}
        self._running: list[_Look] = []
        #: Killed, and not gone yet: on a dead mount until it comes back.
        self._leaving: list[subprocess.Popen[bytes]] = []
        self._ask_at = 0.0

    @property
    def busy(self) -> bool:
        """A look is on its way: poll again in `WATCH_EVERY_S`."""
        return bool(self._running)

    def poll(self) -> None:
        """Begin what is asked for, tell what was seen. Raises as `Caller.script` does."""
        now = time.monotonic()
        self._leaving = [process for process in self._leaving if process.poll() is None]
        for one in list(self._running):
            seen = one.seen(now)
            if seen is not None:
                self._running.remove(one)
                self._leaving.append(one.kill())
                self._looks.answer(one.name, self._me, seen)
        if now < self._ask_at or len(self._running) >= RUNNING_MAX:
            return
        self._ask_at = now + AWAY_S
        wanted = self._looks.wanted(self._known)
        self._ask_at = now + ASK_EVERY_S
        for name, asked in wanted.items():
            self._known[name] = None
            if not set(asked["queues"]) & set(self._me.queues):
                continue  # of jobs whose units never come here
            try:
                self._running.append(_Look(name, asked["what"] | {"access": self._access}))
                first: dict[str, Any] = {"begun": True}
            except OSError as error:  # no room for its files, or no more processes
                first = {"failed": str(error)}
            self._looks.answer(name, self._me, first)
        while len(self._known) > _KNOWN_MAX:
            self._known.pop(next(iter(self._known)))

    def end(self) -> None:
        """Leave what is on its way."""
        self._leaving += [one.kill() for one in self._running]
        self._running.clear()


class _Look:
    """A process that looks."""

    def __init__(self, name: str, asked: dict[str, Any]) -> None:
        self.name = name
        with_packages = preflight.needs_packages(asked)
        self._give_up_at = time.monotonic() + (URLS_S if with_packages else PATHS_S)
        # Files and no pipes: nobody waits for anybody.
        self._out: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `kill`
        with tempfile.TemporaryFile() as request:
            request.write(json.dumps(asked | {"sys_path": sys.path}).encode())
            request.seek(0)
            self._process = subprocess.Popen(
                # For paths without site-packages: that is twice as quick.
                [sys.executable, *(("-P",) if with_packages else ("-I", "-S")), preflight.__file__],
                stdin=request,
                stdout=self._out,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def seen(self, now: float) -> dict[str, Any] | None:
        """What was seen; None as long as it is not known."""
        code = self._process.poll()
        if code is None and now < self._give_up_at:
            return None
        self._out.seek(0)
        messages = [json.loads(line) for line in self._out.read().splitlines()]
        if messages and "wrong" in messages[-1]:
            return dict(messages[-1])
        where = messages[-1]["at"] if messages else ""
        if code is None:
            return {"stuck": where}
        return {"failed": f"the look ended with {code}"}

    def kill(self) -> subprocess.Popen[bytes]:
        """End it, if it can be ended, and do not wait for that; the process."""
        self._process.kill()
        self._out.close()
        return self._process
