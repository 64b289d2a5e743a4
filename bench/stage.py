"""The stage: one Cassandra node, a broker and a running worker, for the length of a bench."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from cassandra import ReadFailure, ReadTimeout
from cassandra.cluster import Session

from bench.data import Table
from bench.ring import ring_slices
from config.sections import cache_dir_default
from producer.local.stack import Endpoints, Stack
from ringhaul.cluster.connect import ClusterConfig, close_session, open_session

KEYSPACE = "bench"
#: Python's arguments for the command `ringhaul`.
PROGRAM = ("-m", "ringhaul")
#: After a TRUNCATE the node deletes files; a run that starts at once would pay for it.
SETTLE_S = 3.0
#: Cassandra's own rule (conf/jvm-server.options) for a machine of 24 GiB: a quarter, at most 8G.
HEAP = "6G"
#: A count of the whole table in one query exceeds the server's timeout.
COUNT_SLICES = 64
#: A worker starts in seconds, but a busy machine is slower.
STARTED_WITHIN_S = 300
#: Attempts of a count that timed out on the node.
COUNT_TRIES = 10


@dataclass(frozen=True)
class Stage:
    """A running stack and how to reach it."""

    endpoints: Endpoints
    session: Session
    folder: Path
    env: dict[str, str]  #: for commands that use the running worker
    env_embedded: dict[str, str]  #: for commands that start embedded workers

    def create(self, table: Table) -> None:
        """Drop the table and create it again."""
        self.session.execute(f"DROP TABLE IF EXISTS {KEYSPACE}.{table.name}", timeout=60)
        self.session.execute(f"CREATE TABLE {KEYSPACE}.{table.name} ({table.schema})", timeout=60)

    def truncate(self, table: Table) -> None:
        """Empty the table and let the node settle."""
        self.session.execute(f"TRUNCATE {KEYSPACE}.{table.name}", timeout=60)
        time.sleep(SETTLE_S)

    def apart(self, name: str, database: int) -> Stage:
        """Return this stage with a broker database and a folder to itself: for another worker."""
        folder = self.folder / name
        folder.mkdir()
        broker = f"{self.env['RINGHAUL_BROKER_URL'].rpartition('/')[0]}/{database}"
        return replace(self, folder=folder, env=self.env | {"RINGHAUL_BROKER_URL": broker})

    def count(self, table: Table) -> int:
        """Return the table's rows, counted by the server one slice of the ring at a time."""
        key = table.columns[0]
        name = f"{KEYSPACE}.{table.name}"
        total = 0
        for first, last in ring_slices(COUNT_SLICES):
            where = f"token({key}) > {first} AND token({key}) <= {last}"
            total += self._counted(f"SELECT count(*) FROM {name} WHERE {where}")
        return total

    def _counted(self, query: str) -> int:
        """Return the answer to a count; retry while the node still compacts the loaded data."""
        for _ in range(COUNT_TRIES - 1):
            with suppress(ReadTimeout, ReadFailure):
                return int(self.session.execute(query, timeout=60).one()[0])
            time.sleep(SETTLE_S)
        return int(self.session.execute(query, timeout=60).one()[0])

    @contextmanager
    def worker(
        self, processes: int, program: Sequence[str] = PROGRAM, pool: str = "prefork"
    ) -> Iterator[int]:
        """Run a `ringhaul worker`, and yield its pid. `program`: Python's arguments before it."""
        log = (self.folder / "worker.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-P", *program, "worker", "-c", str(processes), "--pool", pool],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_for_worker(self.env, process, Path(log.name))
            yield process.pid
        finally:
            process.terminate()
            process.wait(60)
            log.close()


@contextmanager
def stage(nodes: int = 1, heap: str = HEAP) -> Iterator[Stage]:
    """Start everything in a temporary folder; stop and remove it at the end, SIGTERM included.

    `heap`: of each node. Every node has a replica of each row.
    """
    with ExitStack() as stack:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        stack.callback(signal.signal, signal.SIGTERM, before)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ringhaul-bench-")))
        local = Stack(folder / "stack", cache_dir_default())
        stack.callback(local.down, wipe=True)
        local.up(nodes, heap=heap, any_port=True)
        yield stack.enter_context(stage_at(local.endpoints(), folder, replication=nodes))


@contextmanager
def stage_at(ends: Endpoints, folder: Path, replication: int = 1) -> Iterator[Stage]:
    """Yield a stage on running servers, with its files in `folder`."""
    config = ClusterConfig(contact_points=tuple(ends.contact_points), port=ends.port)
    session = open_session(config)
    try:
        session.execute(
            f"CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = "
            f"{{'class': 'SimpleStrategy', 'replication_factor': {replication}}}",
            timeout=60,
        )
        plain = {k: v for k, v in os.environ.items() if not k.startswith("RINGHAUL_")}
        embedded = plain | {
            "RINGHAUL_CLUSTER_CONTACT_POINTS": ",".join(ends.contact_points),
            "RINGHAUL_CLUSTER_PORT": str(ends.port),
            "RINGHAUL_STATE_DIR": str(folder / "state"),
        }
        env = embedded | {
            "RINGHAUL_BROKER_URL": ends.broker_url,
            "RINGHAUL_WORKER_SESSION_JITTER_S": "0",
        }
        yield Stage(ends, session, folder, env, embedded)
    finally:
        close_session(session)


def _wait_for_worker(env: dict[str, str], process: subprocess.Popen[bytes], log: Path) -> None:
    import redis

    from ringhaul.ledger.connection import Caller
    from ringhaul.ledger.workers import Workers

    with redis.Redis.from_url(env["RINGHAUL_BROKER_URL"]) as client:
        workers = Workers(Caller(client))
        deadline = time.monotonic() + STARTED_WITHIN_S
        while not workers.slots():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the worker did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.1)
    time.sleep(2.0)  # its processes open their sessions
