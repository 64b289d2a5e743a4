"""Which workers are alive, and how many units they can work on at once."""

from typing import NamedTuple

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller


class Worker(NamedTuple):
    """One worker parent and its children."""

    host: str
    pid: int
    slots: int  #: Children, each of which works on one unit at a time.


class Workers:
    """The workers of all hosts on one Redis. Methods raise as `Caller.script` does."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def heartbeat(self, worker: Worker, ttl_ms: int) -> None:
        """Count `worker` as alive for `ttl_ms`; call again well before that."""
        self._caller.script("heartbeat", keys.WORKERS, _member(worker), ttl_ms)

    def leave(self, worker: Worker) -> None:
        """Count `worker` no more, at its shutdown."""
        self._caller.command("ZREM", keys.WORKERS, _member(worker))

    def alive(self) -> list[Worker]:
        """The workers heard of within their time to live, sorted."""
        members: list[bytes] = self._caller.script("slots", keys.WORKERS)
        found = []
        for member in members:
            host, pid, slots = member.decode().rsplit(":", 2)
            found.append(Worker(host, int(pid), int(slots)))
        return sorted(found)

    def slots(self) -> int:
        """Units that all living workers can work on at once."""
        return sum(worker.slots for worker in self.alive())


def _member(worker: Worker) -> str:
    return f"{worker.host}:{worker.pid}:{worker.slots}"
