"""A table with many small partitions and one wide one, and functions to compare scanned rows."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent
from cassandra.query import BatchStatement, BatchType

from ringhaul.cql.decode import PageDecoder
from ringhaul.cql.types import parse_type
from ringhaul.scan.options import ScanTarget
from ringhaul.scan.pages import PageReader

PARTITIONS, ROWS_EACH = 5000, 10
#: The key of the wide partition, and its number of rows.
WIDE, WIDE_ROWS = -1, 200_000
ROWS = PARTITIONS * ROWS_EACH + WIDE_ROWS

COLUMNS = {"t": "bigint", "p": "bigint", "c": "int", "v": "text"}
#: Rows in one batch, all of one partition.
BATCH = 500
#: How often a batch is sent before the fixture fails.
ATTEMPTS = 5


@dataclass(frozen=True)
class Rows:
    """A filled table and its content."""

    keyspace: str
    table: str
    expected: pa.Table  #: columns p, c, v, sorted by p, c

    @property
    def select(self) -> str:
        return (
            f"SELECT token(p), p, c, v FROM {self.keyspace}.{self.table} "
            "WHERE token(p) > ? AND token(p) <= ?"
        )

    def target(self, session: Session) -> ScanTarget:
        return ScanTarget(
            PageReader(session), session.prepare(self.select), self.keyspace, where="the node"
        )


def decoder() -> PageDecoder:
    return PageDecoder(list(COLUMNS), [parse_type(kind) for kind in COLUMNS.values()])


def make_table(session: Session, keyspace: str, table: str) -> None:
    session.execute(
        f"CREATE TABLE {keyspace}.{table} (p bigint, c int, v text, PRIMARY KEY (p, c))"
    )


def fill(session: Session, keyspace: str, table: str) -> Rows:
    make_table(session, keyspace, table)
    keys = [p for p in range(PARTITIONS) for _ in range(ROWS_EACH)] + [WIDE] * WIDE_ROWS
    numbers = [*list(range(ROWS_EACH)) * PARTITIONS, *range(WIDE_ROWS)]
    values = [None if p == WIDE else f"{p}-{c}" for p, c in zip(keys, numbers, strict=True)]
    insert = session.prepare(f"INSERT INTO {keyspace}.{table} (p, c, v) VALUES (?, ?, ?)")
    batches = []
    for p in (WIDE, *range(PARTITIONS)):
        begin, count = (len(keys) - WIDE_ROWS, WIDE_ROWS) if p == WIDE else (p * 10, ROWS_EACH)
        for first in range(begin, begin + count, BATCH):
            batch = BatchStatement(BatchType.UNLOGGED)
            for index in range(first, min(first + BATCH, begin + count)):
                batch.add(insert, (keys[index], numbers[index], values[index]))
            batches.append((batch, ()))
    # On a busy machine some requests time out, more so if many wait for the one wide partition:
    # they are sent again.
    for _ in range(ATTEMPTS):
        answers = execute_concurrent(session, batches, concurrency=8, raise_on_first_error=False)
        errors = [answer.result_or_exc for answer in answers if not answer.success]
        if not errors:
            break
        batches = [batch for batch, (ok, _) in zip(batches, answers, strict=True) if not ok]
        time.sleep(1)
    else:
        raise errors[0]
    expected = pa.table(
        {
            "p": pa.array(keys, pa.int64()),
            "c": pa.array(numbers, pa.int32()),
            "v": pa.array(values, pa.string()),
        }
    )
    return Rows(keyspace, table, by_key(expected))


def by_key(rows: pa.Table) -> pa.Table:
    return rows.select(["p", "c", "v"]).sort_by([("p", "ascending"), ("c", "ascending")])


def table_of(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches, decoder().schema)
