"""Requests of a command to the workers of all hosts: checks of files, reports on their hosts.

They are not sent as messages, which would queue up behind units. Each worker's parent process polls
for them on a timer, runs them in the background and answers here.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection
from typing import Any

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.workers import Worker, pack_worker, unpack_worker


class HostRequests:
    """The pending requests. Methods raise as `Caller.script` does."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def send(self, request: dict[str, Any]) -> str:
        """Send a request to all workers; return its name. It expires after `keys.LOOK_TTL_S`."""
        name = secrets.token_hex(6)
        # The request before the name, so that every listed name has a request.
        self._caller.command("SET", keys.look_key(name), json.dumps(request), "EX", keys.LOOK_TTL_S)
        self._caller.command("SADD", keys.LOOKS, name)
        return name

    def wanted(self, known: Collection[str]) -> dict[str, dict[str, Any]]:
        """Return the requests that are not `known` yet, by name."""
        names: set[bytes] = self._caller.command("SMEMBERS", keys.LOOKS)
        found = {}
        for name in sorted(member.decode() for member in names):
            if name in known:
                continue
            request: bytes | None = self._caller.command("GET", keys.look_key(name))
            if request is None:  # expired, also for its sender
                self._caller.command("SREM", keys.LOOKS, name)
            else:
                found[name] = json.loads(request)
        return found

    def answer(self, name: str, worker: Worker, seen: dict[str, Any]) -> None:
        """Store what `worker` has seen so far; replaces its earlier answer."""
        key = keys.seen_key(name)
        self._caller.command("HSET", key, pack_worker(worker), json.dumps(seen))
        self._caller.command("EXPIRE", key, keys.LOOK_TTL_S)

    def answers(self, name: str) -> dict[Worker, dict[str, Any]]:
        """Return what each worker has answered."""
        fields: Any = self._caller.command("HGETALL", keys.seen_key(name))
        return {unpack_worker(worker.decode()): json.loads(seen) for worker, seen in fields.items()}

    def forget(self, name: str) -> None:
        """Remove a request whose sender no longer waits."""
        self._caller.command("SREM", keys.LOOKS, name)
        self._caller.command("DEL", keys.look_key(name), keys.seen_key(name))
