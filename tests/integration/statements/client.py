"""A client that runs statements as a worker process does, and records the calls of its hooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from cassandra import ConsistencyLevel
from cassandra.cluster import Session

from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.schema import TableSchema
from ringhaul.cluster.tables import find_table
from ringhaul.cql.text_format import TextFormat
from ringhaul.dataplane.pool import ConnectionPool
from ringhaul.statements.exec import Bound, Exec, Statement, bind_texts
from ringhaul.statements.in_order import Rows
from ringhaul.statements.lookup import Lookup, LookupHooks, LookupPlan
from ringhaul.statements.options import ReadOptions, RequestHooks, RequestStats

Texts = Sequence[str | None]


@dataclass
class Client:
    """Run statements and lookups over texts, and keep the reported rejects and doubts."""

    session: Session
    plane: ConnectionPool
    page_rows: int = 2000
    timestamp_us: int = 0
    retries_max: int = 8
    request_timeout_s: float = 20.0
    rejected: dict[int, str] = field(default_factory=dict)
    in_doubt: dict[int, str] = field(default_factory=dict)
    not_applied: dict[int, str] = field(default_factory=dict)
    missing: list[int] = field(default_factory=list)
    stats: RequestStats = field(default_factory=RequestStats)

    def options(self) -> ReadOptions:
        return ReadOptions(
            consistency=ConsistencyLevel.LOCAL_ONE,
            page_rows=self.page_rows,
            timestamp_us=self.timestamp_us,
            retries_max=self.retries_max,
            request_timeout_s=self.request_timeout_s,
        )

    def exec(
        self,
        statement: Statement | str,
        *columns: Texts,
        block: int = 1000,
        ordered: bool = True,
        rows: int = 1,
    ) -> list[tuple[int, dict[str, Any]]]:
        """Return (number of the values, row) of each row; `rows`: how often, without markers."""
        if isinstance(statement, str):
            statement = Statement.prepare(self.session, statement)
        hooks = RequestHooks(
            tick=lambda: None,
            throttle=lambda requests: None,
            on_reject=self._once(self.rejected),
            on_doubt=self._once(self.in_doubt),
            on_not_applied=self._once(self.not_applied),
        )
        run = Exec(self.session, self.plane, statement, self.options(), hooks)
        count = len(columns[0]) if columns else rows
        blocks = self._bound(statement.markers, columns, count, block)
        found = list(run.rows(blocks, ordered=ordered))
        self.stats = run.stats
        for batch in found:
            assert batch.batch.schema == run.schema
        return flat(found)

    def lookup(
        self,
        table: TableSchema,
        *key: Texts,
        names: Sequence[str] = (),
        columns: Sequence[str] = (),
        block: int = 1000,
        ordered: bool = True,
        statement: Statement | None = None,
    ) -> list[tuple[int, dict[str, Any]]]:
        """Return (number of the key, row) of each row; `statement`: the plan's, if prepared."""
        plan = LookupPlan.of(table, names, columns)
        statement = statement or Statement.prepare(self.session, plan.statement)
        hooks = LookupHooks(
            tick=lambda: None,
            throttle=lambda keys: None,
            on_reject=self._once(self.rejected),
            on_doubt=self._once(self.in_doubt),
            on_missing=lambda numbers: self.missing.extend(numbers.tolist()),
        )
        run = Lookup(self.session, self.plane, plan, statement.prepared, self.options(), hooks)
        types = tuple(table.types[name] for name in plan.key)
        markers = statement.markers._replace(names=plan.key, types=types)
        found = list(run.rows(self._bound(markers, key, len(key[0]), block), ordered=ordered))
        self.stats = run.stats
        for batch in found:
            assert batch.batch.schema == run.schema
            assert batch.batch.schema.names == list(plan.columns)
        return flat(found)

    def _bound(
        self, markers: Any, columns: Sequence[Texts], count: int, block: int
    ) -> Iterator[Bound]:
        for first in range(0, count, block):
            numbers = np.arange(first, min(first + block, count))
            texts = [pa.array(column[first : first + block], pa.string()) for column in columns]
            bound, bad = bind_texts(markers, numbers, texts, TextFormat())
            for number, marker, reason in bad:
                assert number not in self.rejected
                self.rejected[number] = f"{marker}: {reason}"
            yield bound

    @staticmethod
    def _once(reasons: dict[int, str]) -> Any:
        def report(number: int, reason: str) -> None:
            assert number not in reasons
            reasons[number] = reason

        return report


def flat(found: Sequence[Rows]) -> list[tuple[int, dict[str, Any]]]:
    rows: list[tuple[int, dict[str, Any]]] = []
    for batch in found:
        assert batch.batch.num_rows == len(batch.numbers) > 0
        rows += zip(batch.numbers.tolist(), batch.batch.to_pylist(), strict=True)
    return rows


@contextmanager
def reading_client(session: Session) -> Iterator[Client]:
    plane = ConnectionPool(session, requests_max=1024, bytes_max=1 << 20)
    try:
        yield Client(session, plane)
    finally:
        plane.close()


def table_of(session: Session, keyspace: str, table: str) -> TableSchema:
    session.cluster.refresh_table_metadata(keyspace, table)
    return find_table(DriverView(session), keyspace, table)
