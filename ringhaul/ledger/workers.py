"""The living workers, the queues they consume, how many units they can process, and which jobs
they can read."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, unquote

from ringhaul import __version__
from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.formats import READABLE, Readable


class Worker(NamedTuple):
    """A worker's parent process and its children."""

    host: str
    pid: int
    slots: int  #: Children, each of which processes one unit at a time.
    queues: tuple[str, ...] = ()  #: The queues that it consumes.
    version: str = ""  #: Its version of ringhaul; empty: a version before it was told.
    readable: Readable = Readable()  #: The formats of jobs that it reads.

    @classmethod
    def of_this_version(cls, host: str, pid: int, slots: int, queues: tuple[str, ...]) -> Worker:
        """Return a worker that runs this version of ringhaul."""
        return cls(host, pid, slots, queues, __version__, READABLE)


#: Workers that sweep and clean up for the fleet: enough to survive the loss of a few hosts.
KEEPERS_MAX = 8


class Beat(NamedTuple):
    """The answer to a heartbeat."""

    gone: int  #: How many workers have newly expired; each is reported once.
    keeps: bool  #: The worker is one of the keepers: it sweeps and cleans up.
    alive: int  #: How many workers are alive.


class Workers:
    """The workers of all hosts on one Redis. Methods raise as `Caller.script` does."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def heartbeat(self, worker: Worker, ttl_ms: int) -> Beat:
        """Count `worker` as alive for `ttl_ms`; call it again well before that.

        The first `KEEPERS_MAX` workers are the keepers. The place of a keeper that expires or
        leaves goes to the next worker with a heartbeat.
        """
        kept = (keys.SLOTS, keys.KEEPERS, KEEPERS_MAX)
        gone, keeps, alive = self._caller.script(
            "heartbeat", keys.WORKERS, pack_worker(worker), ttl_ms, *kept
        )
        return Beat(gone, keeps == 1, alive)

    def leave(self, worker: Worker) -> None:
        """Remove `worker` at its shutdown."""
        self._caller.command("ZREM", keys.WORKERS, pack_worker(worker))
        self._caller.command("ZREM", keys.KEEPERS, pack_worker(worker))
        self._caller.command("DEL", keys.SLOTS)  # see fleet.lua

    def alive(self) -> list[Worker]:
        """Return the workers whose heartbeat has not expired, sorted."""
        members: list[bytes] = self._caller.reading_script("slots", keys.WORKERS)
        return sorted(unpack_worker(member.decode()) for member in members)

    def slots(self) -> int:
        """Return how many units all living workers can process at once."""
        return sum(worker.slots for worker in self.alive())


#: Begins what a member says of a worker's version, among the names of its queues: earlier versions
#: take it for a queue, to which nothing is sent.
_VERSION = ";"


def pack_worker(worker: Worker) -> str:
    """Return the member of `ringhaul:workers` for a worker."""
    words = [quote(queue, safe="") for queue in worker.queues]
    if worker.version:
        words.append(f"{_VERSION}{quote(worker.version, safe='')}{_VERSION}{worker.readable}")
    return f"{worker.host}:{worker.pid}:{worker.slots}:{','.join(words)}"


def unpack_worker(member: str) -> Worker:
    """Return the worker of a member."""
    host, pid, slots, words = member.rsplit(":", 3)
    queues, version, readable = [], "", Readable()
    for word in filter(None, words.split(",")):
        if not word.startswith(_VERSION):
            queues.append(unquote(word))
            continue
        # A later version may say more.
        found, formats, *_ = word.removeprefix(_VERSION).split(_VERSION)
        version, readable = unquote(found), Readable.parse(formats)
    return Worker(host, int(pid), int(slots), tuple(queues), version, readable)
