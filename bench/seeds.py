"""Patterns for fast writes that articles recommend, through the official driver.

`python -m bench.seeds PATTERN HOST PORT KEYSPACE.TABLE FILE ROWS` writes the first ROWS records of
FILE and prints one JSON line. What an article reads, is written here; sessions are open before the
clock starts, reading and converting the file is inside, as with every other system.
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
from cassandra.query import BatchStatement, BatchType, BoundStatement, PreparedStatement, Statement

#: Of the pool's patterns: queries that a process takes at a time, and units of queries.
POOL_CHUNK = 10
UNIT_ROWS = 100
#: Of the asynchronous patterns: rows in flight.
IN_FLIGHT_ROWS = 8000
#: Rows of a batch; of small rows far above the server's warning, well below what it refuses.
BATCH_ROWS = 100

Row = Sequence[object]

#: CQL type -> how a field of the file becomes what the driver binds.
_READERS: dict[str, Callable[[str], object]] = {
    "text": str,
    "bigint": int,
    "double": float,
    "timestamp": datetime.fromisoformat,
}


class Target(NamedTuple):
    """What to write to, as it can be given to another process."""

    host: str
    port: int
    keyspace: str
    table: str
    columns: tuple[str, ...]


class Writer(NamedTuple):
    """A session and the prepared INSERT."""

    session: Session
    prepared: PreparedStatement


def one_process(target: Target, rows: Iterator[Row]) -> float:
    """S0a: `execute_concurrent_with_args` in one process."""
    session, prepared = open_writer(target)
    started = time.perf_counter()
    execute_concurrent_with_args(session, prepared, rows)
    return time.perf_counter() - started


def pool_of_queries(target: Target, rows: Iterator[Row]) -> float:
    """S0b: a process pool, one query a task."""
    with _Pool(target) as pool:
        return pool.time(_write_one, rows, POOL_CHUNK)


def pool_of_units(target: Target, rows: Iterator[Row]) -> float:
    """S0c: a process pool, units of 100 queries that each process runs concurrently."""
    units = iter(lambda: list(itertools.islice(rows, UNIT_ROWS)), [])
    with _Pool(target) as pool:
        return pool.time(_write_unit, units, 1)


def single_statements(target: Target, rows: Iterator[Row]) -> float:
    """S3a: asynchronous single statements, 8,000 in flight."""
    session, prepared = open_writer(target)
    window = _Window(session, IN_FLIGHT_ROWS)
    started = time.perf_counter()
    for row in rows:
        window.send(prepared.bind(row))
    window.wait()
    return time.perf_counter() - started


def mixed_batches(target: Target, rows: Iterator[Row]) -> float:
    """S3b: unlogged batches of rows as they come, whatever their partitions."""
    session, prepared = open_writer(target)
    window = _Window(session, IN_FLIGHT_ROWS // BATCH_ROWS)
    started = time.perf_counter()
    while batch := list(itertools.islice(rows, BATCH_ROWS)):
        window.send(_batch([prepared.bind(row) for row in batch]))
    window.wait()
    return time.perf_counter() - started


def batches_by_replicas(target: Target, rows: Iterator[Row]) -> float:
    """S3c: of every 8,000 rows, unlogged batches of those with the same replica set."""
    session, prepared = open_writer(target)
    replicas_of = session.cluster.metadata.get_replicas
    window = _Window(session, IN_FLIGHT_ROWS // BATCH_ROWS)
    started = time.perf_counter()
    while micro_batch := list(itertools.islice(rows, IN_FLIGHT_ROWS)):
        sets: dict[frozenset[object], list[BoundStatement]] = {}
        for row in micro_batch:
            bound = prepared.bind(row)
            replicas = frozenset(replicas_of(target.keyspace, bound.routing_key))
            sets.setdefault(replicas, []).append(bound)
        for of_one in sets.values():
            for first in range(0, len(of_one), BATCH_ROWS):
                window.send(_batch(of_one[first : first + BATCH_ROWS]))
    window.wait()
    return time.perf_counter() - started


PATTERNS: dict[str, Callable[[Target, Iterator[Row]], float]] = {
    "S0a": one_process,
    "S0b": pool_of_queries,
    "S0c": pool_of_units,
    "S3a": single_statements,
    "S3b": mixed_batches,
    "S3c": batches_by_replicas,
}


def main() -> None:
    pattern, host, port, name, path, rows = sys.argv[1:7]
    keyspace, _, table = name.partition(".")
    with Path(path).open(newline="", encoding="utf-8") as file:
        records = csv.reader(file)
        target = Target(host, int(port), keyspace, table, tuple(next(records)))
        readers = _readers(target)
        converted = (
            [read(field) for read, field in zip(readers, record, strict=True)]
            for record in itertools.islice(records, int(rows))
        )
        load_s = PATTERNS[pattern](target, converted)
    print(json.dumps({"rows": int(rows), "load_s": load_s}))


def open_writer(target: Target) -> Writer:
    """A session as the driver makes it by default."""
    session = Cluster([target.host], port=target.port).connect(target.keyspace)
    columns, marks = ", ".join(target.columns), ", ".join("?" * len(target.columns))
    prepared = session.prepare(f"INSERT INTO {target.table} ({columns}) VALUES ({marks})")
    return Writer(session, prepared)


def _readers(target: Target) -> list[Callable[[str], object]]:
    cluster = Cluster([target.host], port=target.port)
    try:
        cluster.connect()
        table = cluster.metadata.keyspaces[target.keyspace].tables[target.table]
        return [_READERS[table.columns[column].cql_type] for column in target.columns]
    finally:
        cluster.shutdown()


def _batch(statements: list[BoundStatement]) -> BatchStatement:
    batch = BatchStatement(BatchType.UNLOGGED)
    batch.add_all(statements, [None] * len(statements))
    return batch


class _Window:
    """Asynchronous requests, so many at a time."""

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
    """A process for each core, each with a session of its own that is open before the clock."""

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

    def time(self, write: Callable[..., None], tasks: Iterator[object], chunk: int) -> float:
        """Seconds until all tasks are done."""
        started = time.perf_counter()
        self._pool.map(write, tasks, chunk)
        return time.perf_counter() - started


#: Of a process of the pool.
_writer: Writer


def _open(target: Target, ready: Barrier) -> None:
    global _writer
    _writer = open_writer(target)
    ready.wait(60)


def _write_one(row: Row) -> None:
    _writer.session.execute(_writer.prepared, row)


def _write_unit(rows: list[Row]) -> None:
    execute_concurrent_with_args(_writer.session, _writer.prepared, rows)


if __name__ == "__main__":
    main()
