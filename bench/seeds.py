"""Patterns for many fast queries that articles recommend, with the official driver.

`python -m bench.seeds HOST PORT PATTERN STATEMENT FILE ROWS` runs the statement with the first ROWS
records of FILE as values of its markers and prints one JSON line. The first three patterns come
from an article about reads: they also count result rows. Sessions open before the clock starts;
reading and converting the file is measured, as with every other system.
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
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import NamedTuple

from cassandra.cluster import Cluster, Session
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import (
    BatchStatement,
    BatchType,
    BoundStatement,
    PreparedStatement,
    Statement,
    tuple_factory,
)

#: For the patterns with a pool: queries a task, and queries a unit.
POOL_CHUNK = 10
UNIT_ROWS = 100
#: For the asynchronous patterns: rows in flight.
IN_FLIGHT_ROWS = 8000
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
    """The result of a pattern."""

    work_s: float
    answers: int = 0  #: rows received


class Client(NamedTuple):
    """A session and the prepared statement."""

    session: Session
    prepared: PreparedStatement


def one_process(target: Target, rows: Iterator[Row]) -> Timed:
    """S0a: `execute_concurrent_with_args` in one process."""
    session, prepared = open_client(target)
    started = time.perf_counter()
    results = execute_concurrent_with_args(session, prepared, rows)
    answers = [result.all() for _, result in results]
    return Timed(time.perf_counter() - started, sum(map(len, answers)))


def pool_of_queries(target: Target, rows: Iterator[Row]) -> Timed:
    """S0b: a process pool, one query a task."""
    with _Pool(target) as pool:
        return pool.time(_run_one, rows, POOL_CHUNK)


def pool_of_units(target: Target, rows: Iterator[Row]) -> Timed:
    """S0c: a process pool, units of 100 queries that each process runs concurrently."""
    units = iter(lambda: list(itertools.islice(rows, UNIT_ROWS)), [])
    with _Pool(target) as pool:
        return pool.time(_run_unit, units, 1)


def single_statements(target: Target, rows: Iterator[Row]) -> Timed:
    """S3a: asynchronous single statements, 8,000 in flight."""
    session, prepared = open_client(target)
    window = _Window(session, IN_FLIGHT_ROWS)
    started = time.perf_counter()
    for row in rows:
        window.send(prepared.bind(row))
    window.wait()
    return Timed(time.perf_counter() - started)


def mixed_batches(target: Target, rows: Iterator[Row]) -> Timed:
    """S3b: unlogged batches of rows in file order, of any partitions."""
    session, prepared = open_client(target)
    window = _Window(session, IN_FLIGHT_ROWS // BATCH_ROWS)
    started = time.perf_counter()
    while batch := list(itertools.islice(rows, BATCH_ROWS)):
        window.send(_batch([prepared.bind(row) for row in batch]))
    window.wait()
    return Timed(time.perf_counter() - started)


def batches_by_replicas(target: Target, rows: Iterator[Row]) -> Timed:
    """S3c: of every 8,000 rows, unlogged batches of those with the same replica set."""
    session, prepared = open_client(target)
    replicas_of = session.cluster.metadata.get_replicas
    window = _Window(session, IN_FLIGHT_ROWS // BATCH_ROWS)
    started = time.perf_counter()
    while micro_batch := list(itertools.islice(rows, IN_FLIGHT_ROWS)):
        sets: dict[frozenset[object], list[BoundStatement]] = {}
        for row in micro_batch:
            bound = prepared.bind(row)
            replicas = frozenset(replicas_of(bound.keyspace, bound.routing_key))
            sets.setdefault(replicas, []).append(bound)
        for of_one in sets.values():
            for first in range(0, len(of_one), BATCH_ROWS):
                window.send(_batch(of_one[first : first + BATCH_ROWS]))
    window.wait()
    return Timed(time.perf_counter() - started)


PATTERNS: dict[str, Callable[[Target, Iterator[Row]], Timed]] = {
    "S0a": one_process,
    "S0b": pool_of_queries,
    "S0c": pool_of_units,
    "S3a": single_statements,
    "S3b": mixed_batches,
    "S3c": batches_by_replicas,
}


def main() -> None:
    host, port, pattern, statement, path, rows = sys.argv[1:7]
    target = Target(host, int(port), statement)
    readers = _readers(target)
    with Path(path).open(newline="", encoding="utf-8") as file:
        records = itertools.islice(csv.reader(file), 1, int(rows) + 1)
        # Fields beyond the markers are not used.
        values = ([read(field) for read, field in zip(readers, r, strict=False)] for r in records)
        timed = PATTERNS[pattern](target, values)
    print(json.dumps({"queries": int(rows), "answers": timed.answers, "work_s": timed.work_s}))


def open_client(target: Target) -> Client:
    """Open a session with the driver's defaults, but with rows as tuples, as in the article."""
    session = Cluster([target.host], port=target.port).connect()
    session.row_factory = tuple_factory
    return Client(session, session.prepare(target.statement))


def _readers(target: Target) -> list[Callable[[str], object]]:
    client = open_client(target)
    try:
        return [_READERS[marker.type.typename] for marker in client.prepared.column_metadata]
    finally:
        client.session.cluster.shutdown()


def _batch(statements: list[BoundStatement]) -> BatchStatement:
    batch = BatchStatement(BatchType.UNLOGGED)
    batch.add_all(statements, [None] * len(statements))
    return batch


class _Window:
    """A bounded number of asynchronous requests in flight."""

    def __init__(self, session: Session, requests_max: int) -> None:
        self._session, self._requests_max = session, requests_max
        self._free = threading.Semaphore(requests_max)
        self._error: Exception | None = None

    def send(self, statement: Statement) -> None:
        self._free.acquire()
        if self._error is not None:
            raise self._error
        self._session.execute_async(statement).add_callbacks(self._answered, self._failed)

    def wait(self) -> None:
        for _ in range(self._requests_max):
            self._free.acquire()
        if self._error is not None:
            raise self._error

    def _answered(self, _: object) -> None:
        self._free.release()

    def _failed(self, error: Exception) -> None:
        self._error = error
        self._free.release()


class _Pool:
    """A process for each core, each with a session that opens before the clock starts."""

    def __init__(self, target: Target) -> None:
        # Not forked: the driver's threads do not survive a fork.
        context = multiprocessing.get_context("spawn")
        processes = os.cpu_count() or 1
        ready = context.Barrier(processes + 1)
        self._pool = context.Pool(processes, initializer=_open, initargs=(target, ready))
        ready.wait(60)

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()
        self._pool.join()

    def time(self, run: Callable[..., Rows], tasks: Iterator[object], chunk: int) -> Timed:
        """Run all tasks; their rows come back through the pool, as in the article."""
        started = time.perf_counter()
        answers = self._pool.map(run, tasks, chunk)
        return Timed(time.perf_counter() - started, sum(map(len, answers)))


#: State of a process of the pool.
_client: Client


def _open(target: Target, ready: Barrier) -> None:
    global _client
    _client = open_client(target)
    ready.wait(60)


def _run_one(values: Row) -> Rows:
    rows: Rows = _client.session.execute(_client.prepared, values).all()
    return rows


def _run_unit(units: list[Row]) -> Rows:
    results = execute_concurrent_with_args(_client.session, _client.prepared, units)
    return [row for _, result in results for row in result.all()]


if __name__ == "__main__":
    main()
