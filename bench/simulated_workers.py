"""Workers that do everything except write rows: they coordinate, through the real ledger and queue.

`python -m bench.simulated_workers FIRST LAST` registers the workers FIRST .. LAST - 1, each of one
process, prints `ready`, and takes units from Celery's queue until its standard input ends. Each
unit is claimed and committed with the figures of a unit of a real size; then the next units are
published. All of these workers run in this one process, so its own CPU says nothing; that of Redis
does. The ledger and the messages come from the settings in the environment.
"""

from __future__ import annotations

import resource
import select
import sys
import time
from collections import deque
from typing import Any, NamedTuple

import kombu.messaging

from bench.made_jobs import UNIT_BYTES, UNIT_ROWS
from config.celery_config import QUEUE_LOAD
from ringhaul.ledger.answers import Claimed
from ringhaul.ledger.host_requests import HostRequests
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import Worker, Workers
from ringhaul.records.unit import UnitResult
from tasks.application import app
from tasks.base import attempt_token
from tasks.connect import open_ledger
from tasks.parent.preflight import ASK_EVERY_S
from tasks.publish import publish_next
from tasks.settings import process_settings

LEASE_MS = 60_000
#: Longer than any bench: heartbeats are measured separately.
ALIVE_MS = 3_600_000
#: A real unit's latencies fall into about this many of the buckets of dataplane/latency.py.
LATENCY_BUCKETS = 24
TOTALS = {"rows": UNIT_ROWS, "rejected": 0, "bytes": UNIT_BYTES, "retries": 0}
LATENCIES = {str(40 + bucket): 9_000 for bucket in range(LATENCY_BUCKETS)}
#: How long to wait for a message while units are unfinished, and when no unit is.
BUSY_S, IDLE_S = 0.002, 0.05


class Held(NamedTuple):
    """A unit in the hands of a worker."""

    worker: int
    message: Any
    job: str
    unit: int
    epoch: int
    token: str


def worker(number: int) -> Worker:
    """Return one of the simulated workers."""
    return Worker(f"sim{number}", 4000 + number, 1, (QUEUE_LOAD,))


def result(name: str) -> UnitResult:
    """Return the result of a unit of a usual size."""
    return UnitResult(
        source=0,
        records=UNIT_ROWS,
        dropped=0,
        filtered=0,
        written=UNIT_ROWS,
        rejected=0,
        input_bytes=UNIT_BYTES,
        retries=0,
        elapsed_ms=13_000,
        cpu_ms=1_900,
        attempt=1,
        rss_bytes_max=150 << 20,
        window_min=256,
        window_max=1024,
        window_shrunk=0,
        sstables=0,
        missed=0,
        worker=name,
    )


class Fleet:
    """The simulated workers."""

    def __init__(self, ledger: Ledger, numbers: range) -> None:
        self._ledger, self._numbers = ledger, numbers
        self._idle = deque(numbers)
        self._held: deque[Held] = deque()
        self._requests = HostRequests(ledger.caller)
        self._known: set[str] = set()
        self._look_at = 0.0
        self._connection = app.connection_for_read()
        channel = self._connection.default_channel
        queue = app.amqp.queues[QUEUE_LOAD]
        channel.basic_qos(0, len(numbers), False)
        messaging: Any = kombu.messaging  # has no types
        messaging.Consumer(channel, [queue], on_message=self._take, accept=["json"]).consume()

    def join(self) -> None:
        """Register all workers."""
        for number in self._numbers:
            Workers(self._ledger.caller).heartbeat(worker(number), ALIVE_MS)

    def step(self) -> None:
        """Take a message if a worker is idle, else finish a unit."""
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + ASK_EVERY_S
            self._answer_requests()
        if self._idle:
            try:
                self._connection.drain_events(timeout=BUSY_S if self._held else IDLE_S)
                return
            except TimeoutError:
                pass
        if self._held:
            self._finish(self._held.popleft())

    def _take(self, message: Any) -> None:
        number = self._idle.popleft()
        facts = message.payload[1]
        job, unit, epoch = facts["job"], facts["unit"], facts["epoch"]
        uuid = message.headers["id"]
        token = attempt_token(uuid, f"celery@sim{number}", 4000 + number)
        claim = self._ledger.claim(job, unit, epoch, token, LEASE_MS)
        if not isinstance(claim, Claimed):
            message.ack()
            self._idle.append(number)
            return
        self._held.append(Held(number, message, job, unit, epoch, token))

    def _finish(self, held: Held) -> None:
        job, unit, token = held.job, held.unit, held.token
        packed = result(f"sim{held.worker}:{4000 + held.worker}").pack()
        self._ledger.commit(job, unit, held.epoch, token, packed, TOTALS, LATENCIES)
        publish_next(self._ledger, job)
        held.message.ack()
        self._idle.append(held.worker)

    def _answer_requests(self) -> None:
        """Tell commands that plan a job that all workers see its files."""
        for name in self._requests.wanted(self._known):
            self._known.add(name)
            for number in self._numbers:
                self._requests.answer(name, worker(number), {"wrong": []})


def hold_connections(count: int) -> list[Any]:
    """Open idle connections, as many workers have them: Redis goes over all its clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 1000)), hard))
    pool = open_ledger(process_settings()).caller.client.connection_pool
    held = [pool.connection_class(**pool.connection_kwargs) for _ in range(count)]
    for connection in held:
        connection.connect()
    return held


def main() -> None:
    numbers = range(int(sys.argv[1]), int(sys.argv[2]))
    ledger = open_ledger(process_settings())
    fleet = Fleet(ledger, numbers)
    fleet.join()
    held = hold_connections(len(numbers))
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        fleet.step()
    for connection in held:
        connection.disconnect()


if __name__ == "__main__":
    main()
