"""Patterns for many fast queries that articles recommend, with the official driver.

`python -m bench.seeds HOST PORT PATTERN STATEMENT FILE ROWS [PROCESSES [IN_FLIGHT]]` runs the
statement with the first ROWS records of FILE as values of its markers and prints one JSON line. The
first three patterns come from an article about reads: they also count result rows. Sessions open
before the clock starts; reading and converting the file is measured, as with every other system.
PROCESSES 0 means the article's own number: one, and one for each core with a pool; other patterns
share the file among the processes. IN_FLIGHT 0 means the article's bound.
"""

from __future__ import annotations

import csv
import itertools
import json
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import NamedTuple

from cassandra import OperationTimedOut, Timeout
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import (
    BatchStatement,
    BatchType,
    BoundStatement,
    PreparedStatement,
    Statement,
    tuple_factory,
)

from bench.driver import open_cluster
from bench.processes import tree_usage

#: For the patterns with a pool: queries a task, and queries a unit.
POOL_CHUNK = 10
UNIT_ROWS = 100
#: For the asynchronous patterns: rows in flight.
IN_FLIGHT_ROWS = 8000
#: Of a statement that times out.
TRIES = 5
#: Rows of a batch; with small rows far above the server's warning, well below its limit.
BATCH_ROWS = 100

Row = Sequence[object]
Rows = list[Row]

#: The driver's name of a marker's type -> converter of a field to the value that it binds.
_READERS: dict[str, Callable[[str], object]] = {
    "varchar": str,
    "bigint": int,
    "double": float,
    "timestamp": datetime.fromisoformat,
}


class Target(NamedTuple):
    """Address and statement, in a form that can be passed to another process."""

    host: str
    port: int
    statement: str


class Timed(NamedTuple):
    """What a pattern took, without its start."""

    work_s: float
    cpu_s: float  #: of all its processes
    answers: int  #: rows received


class Client(NamedTuple):
    """A session and the prepared statement."""

    session: Session
    prepared: PreparedStatement


def one_process(client: Client, rows: Iterator[Row], in_flight: int) -> int:
    """S0a: `execute_concurrent_with_args` in one process, 100 in flight."""
    results = execute_concurrent_with_args(
        client.session, client.prepared, rows, concurrency=in_flight or UNIT_ROWS
    )
    return sum(len(result.all()) for _, result in results)


def single_statements(client: Client, rows: Iterator[Row], in_flight: int) -> int:
    """S3a: asynchronous single statements, 8,000 in flight."""
    window = _Window(client.session, in_flight or IN_FLIGHT_ROWS)
    for row in rows:
        window.send(client.prepared.bind(row))
    window.wait()
    return 0


def mixed_batches(client: Client, rows: Iterator[Row], in_flight: int) -> int:
    """S3b: unlogged batches of rows in file order, of any partitions."""
    window = _Window(client.session, _batches(in_flight))
    while batch := list(itertools.islice(rows, BATCH_ROWS)):
        window.send(_batch([client.prepared.bind(row) for row in batch]))
    window.wait()
    return 0


def batches_by_replicas(client: Client, rows: Iterator[Row], in_flight: int) -> int:
    """S3c: of every 8,000 rows, unlogged batches of those with the same replica set."""
    replicas_of = client.session.cluster.metadata.get_replicas
    window = _Window(client.session, _batches(in_flight))
    while micro_batch := list(itertools.islice(rows, in_flight or IN_FLIGHT_ROWS)):
        sets: dict[frozenset[object], list[BoundStatement]] = {}
        for row in micro_batch:
            bound = client.prepared.bind(row)
            replicas = frozenset(replicas_of(bound.keyspace, bound.routing_key))
            sets.setdefault(replicas, []).append(bound)
        for of_one in sets.values():
            for first in range(0, len(of_one), BATCH_ROWS):
                window.send(_batch(of_one[first : first + BATCH_ROWS]))
    window.wait()
    return 0


def _batches(in_flight: int) -> int:
    """Return the batches in flight for a bound in rows."""
    return max(1, (in_flight or IN_FLIGHT_ROWS) // BATCH_ROWS)


#: Patterns of one process; of several, each runs the pattern over a part of the file.
Stream = Callable[[Client, Iterator[Row], int], int]
STREAMS: dict[str, Stream] = {
    "S0a": one_process,
    "S3a": single_statements,
    "S3b": mixed_batches,
    "S3c": batches_by_replicas,
}
#: Patterns of a process pool. S0b: one query a task. S0c: units of 100 queries that each process
#: runs concurrently. S0d: a file a task, where FILE is a folder, and a bucket a task, of which a
#: query returns many rows.
POOLS = ("S0b", "S0c", "S0d-files", "S0d-buckets")


def main() -> None:
    host, port, pattern, statement, path, rows = sys.argv[1:7]
    processes, in_flight = (*map(int, sys.argv[7:9]), 0, 0)[:2]
    target = Target(host, int(port), statement)
    part = Part(target, path, 0, int(rows), in_flight)
    if pattern in POOLS:
        timed = _pooled(pattern, part, processes or os.cpu_count() or 1)
    else:
        timed = _streamed(pattern, part, processes or 1)
    print(
        json.dumps(
            {
                "queries": int(rows),
                "answers": timed.answers,
                "work_s": timed.work_s,
                "cpu_s": timed.cpu_s,
            }
        )
    )


class Part(NamedTuple):
    """Records `first` to `first + rows` of a file, and the bound of requests in flight."""

    target: Target
    path: str
    first: int
    rows: int
    in_flight: int

    def values(self) -> Iterator[Row]:
        """Yield the values of each record; fields beyond the markers are not used."""
        readers = _readers(self.target)
        with Path(self.path).open(newline="", encoding="utf-8") as file:
            begin = self.first + 1  # after the header
            for record in itertools.islice(csv.reader(file), begin, begin + self.rows):
                yield [read(field) for read, field in zip(readers, record, strict=False)]


class _Clock:
    """Time and CPU of this process and its children, from the clock's creation on."""

    def __init__(self) -> None:
        self._cpu_s, self._started = tree_usage(os.getpid()).cpu_s, time.perf_counter()

    def timed(self, answers: int) -> Timed:
        work_s = time.perf_counter() - self._started
        return Timed(work_s, tree_usage(os.getpid()).cpu_s - self._cpu_s, answers)


def _streamed(pattern: str, part: Part, processes: int) -> Timed:
    """Run a pattern in this process, or in several that share the records."""
    if processes == 1:
        client, rows = open_client(part.target), _opened(part)
        clock = _Clock()
        return clock.timed(STREAMS[pattern](client, rows, part.in_flight))
    # Not forked: the driver's threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    ready, answers = context.Barrier(processes + 1), context.SimpleQueue()
    cuts = [part.rows * number // processes for number in range(processes + 1)]
    parts = [part._replace(first=a, rows=b - a) for a, b in itertools.pairwise(cuts)]
    children = [
        context.Process(target=_run_part, args=(pattern, one, ready, answers)) for one in parts
    ]
    for child in children:
        child.start()
    ready.wait(60)
    clock = _Clock()
    for child in children:
        child.join()
        if child.exitcode:
            raise RuntimeError(f"a process of {pattern} ended {child.exitcode}")
    return clock.timed(sum(answers.get() for _ in children))


def _run_part(pattern: str, part: Part, ready: Barrier, answers: SimpleQueue[int]) -> None:
    client, rows = open_client(part.target), _opened(part)
    ready.wait(60)
    answers.put(STREAMS[pattern](client, rows, part.in_flight))
    os._exit(0)  # the driver's threads would take a moment to end


def _opened(part: Part) -> Iterator[Row]:
    """Return the records, with what they need from the server already there."""
    rows = part.values()
    return itertools.chain([next(rows)], rows)


def _pooled(pattern: str, part: Part, processes: int) -> Timed:
    """Run a pattern of a process pool."""
    # At least one unit for each process, however many may be in flight.
    unit_rows = min(part.in_flight or UNIT_ROWS, -(-part.rows // processes))
    with _Pool(part.target, processes, part.in_flight) as pool:
        if pattern == "S0d-files":
            return pool.time(_load_file, map(str, sorted(Path(part.path).iterdir())), 1)
        rows = _opened(part)
        if pattern == "S0c":
            units = iter(lambda: list(itertools.islice(rows, unit_rows)), [])
            return pool.time(_run_unit, units, 1)
        return pool.time(_run_one, rows, POOL_CHUNK if pattern == "S0b" else 1)


def open_client(target: Target) -> Client:
    """Open a session with the driver's defaults, but with rows as tuples, as in the article."""
    session = open_cluster(target.host, target.port).connect()
    session.row_factory = tuple_factory
    return Client(session, session.prepare(target.statement))


def _readers(target: Target) -> list[Callable[[str], object]]:
    client = open_client(target)
    try:
        return _readers_of(client.prepared)
    finally:
        client.session.cluster.shutdown()


def _readers_of(prepared: PreparedStatement) -> list[Callable[[str], object]]:
    return [_READERS[marker.type.typename] for marker in prepared.column_metadata]


def _batch(statements: list[BoundStatement]) -> BatchStatement:
    batch = BatchStatement(BatchType.UNLOGGED)
    batch.add_all(statements, [None] * len(statements))
    return batch


class _Window:
    """A bounded number of asynchronous requests in flight.

    A request that timed out on the server is sent again, or a busy node would end the run.
    """

    def __init__(self, session: Session, requests_max: int) -> None:
        self._session, self._requests_max = session, requests_max
        self._free = threading.Semaphore(requests_max)
        self._error: Exception | None = None

    def send(self, statement: Statement) -> None:
        self._free.acquire()
        self._raise()
        self._send(statement, TRIES)

    def wait(self) -> None:
        for _ in range(self._requests_max):
            self._free.acquire()
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _send(self, statement: Statement, tries: int) -> None:
        def failed(error: Exception) -> None:
            if isinstance(error, Timeout | OperationTimedOut) and tries > 1:
                self._send(statement, tries - 1)
                return
            self._error = error
            self._free.release()

        answer = self._session.execute_async(statement)
        answer.add_callbacks(lambda _: self._free.release(), failed)


class _Pool:
    """Processes that each have a session, which opens before the clock starts."""

    def __init__(self, target: Target, processes: int, in_flight: int) -> None:
        context = multiprocessing.get_context("spawn")
        ready = context.Barrier(processes + 1)
        self._pool = context.Pool(processes, initializer=_open, initargs=(target, in_flight, ready))
        ready.wait(60)

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()
        self._pool.join()

    def time(self, run: Callable[..., Rows], tasks: Iterator[object], chunk: int) -> Timed:
        """Run all tasks; their rows come back through the pool, as in the article."""
        clock = _Clock()
        answers = self._pool.map(run, tasks, chunk)
        return clock.timed(sum(map(len, answers)))


#: State of a process of the pool.
_client: Client
_in_flight: int


def _open(target: Target, in_flight: int, ready: Barrier) -> None:
    global _client, _in_flight
    _client, _in_flight = open_client(target), in_flight
    ready.wait(60)


def _run_one(values: Row) -> Rows:
    rows: Rows = _client.session.execute(_client.prepared, values).all()
    return rows


def _run_unit(units: Sequence[Row]) -> Rows:
    results = execute_concurrent_with_args(
        _client.session, _client.prepared, units, concurrency=_in_flight or UNIT_ROWS
    )
    return [row for _, result in results for row in result.all()]


def _load_file(path: str) -> Rows:
    readers = _readers_of(_client.prepared)
    with Path(path).open(newline="", encoding="utf-8") as file:
        records = itertools.islice(csv.reader(file), 1, None)
        values = [[read(field) for read, field in zip(readers, r, strict=True)] for r in records]
    _run_unit(values)
    return [()] * len(values)


if __name__ == "__main__":
    main()
