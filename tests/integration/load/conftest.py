"""Fixtures that run a unit of a file on a real cluster, without a worker or a ledger.

Also the fixtures of a client of scripted servers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session
from cassandra.query import PreparedStatement

from producer.local.stack import Endpoints
from ringhaul.cluster.connect import ClusterConfig, close_session, open_session
from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.schema import TableSchema
from ringhaul.cluster.tables import find_table
from ringhaul.dataplane.pacing import UNTHROTTLED, Throttle
from ringhaul.dataplane.pool import ConnectionPool
from ringhaul.load.run import run_load_unit
from ringhaul.load.statement import insert_statement
from ringhaul.load.write import RequestBounds, Target
from ringhaul.records.account import UnitHooks, UnitOutcome
from ringhaul.records.unit import LoadUnit
from tests.integration.load.pipeline_client import client as client
from tests.integration.load.pipeline_client import server as server
from tests.integration.load.pipeline_client import servers as servers
from tests.loads import load_job, load_source

REQUEST_TIMEOUT_S = 30.0


def cluster_config(endpoints: Endpoints) -> ClusterConfig:
    return ClusterConfig(contact_points=tuple(endpoints.contact_points), port=endpoints.port)


@pytest.fixture(scope="session")
def worker_session(endpoints: Endpoints) -> Iterator[Session]:
    """A session as a worker process opens it."""
    session = open_session(cluster_config(endpoints))
    yield session
    assert close_session(session)


def make_table(session: Session, keyspace: str, definition: str) -> TableSchema:
    """Create `keyspace.t (definition)`, and return its schema as the producer reads it."""
    session.execute(f"CREATE TABLE {keyspace}.t ({definition})", timeout=60)
    # A worker's session learns of new keyspaces half a minute late, to save queries.
    session.cluster.refresh_schema_metadata()
    return find_table(DriverView(session), keyspace, "t")


@dataclass
class Ticks:
    """The progress that a unit reports; `then` may stop it."""

    seen: list[tuple[int, int, int]] = field(default_factory=list)
    then: Callable[[], None] = lambda: None

    def __call__(self, rows: int, rejected: int, input_bytes: int) -> None:
        self.seen.append((rows, rejected, input_bytes))
        self.then()


def run_file(
    session: Session,
    table: TableSchema,
    path: Path,
    fields: Sequence[str],
    *,
    ticks: Ticks | None = None,
    throttle: Throttle = UNTHROTTLED,
    request_timeout_s: float = REQUEST_TIMEOUT_S,
    retries_max: int = 10,
    prepared: PreparedStatement | None = None,
    timestamp_field: str | None = None,
    ttl_field: str | None = None,
    later_us: int = 0,
    plane: ConnectionPool | None = None,
    **options: Any,
) -> UnitOutcome:
    """Load all of a plain file without a header as one unit. `options` are the job's.

    `plane`: open connections, instead of new ones.
    """
    size_bytes = path.stat().st_size
    columns = [name for name in fields if name not in (timestamp_field, ttl_field)]
    source = replace(
        load_source(
            fields,
            path=str(path),
            size_bytes=size_bytes,
            mapping=[(name, name) for name in columns],
        ),
        timestamp_field=timestamp_field,
        ttl_field=ttl_field,
    )
    job = load_job(table, source, **({"consistency": "ONE"} | options))
    if prepared is None:
        prepared = session.prepare(
            insert_statement(table, columns, job.ttl_s, ttl_bound=ttl_field is not None)
        )
    with ExitStack() as stack:
        if plane is not None:
            target = Target(session, plane, prepared, table.keyspace)
        else:
            target = stack.enter_context(connected_target(session, prepared, table.keyspace))
        return run_load_unit(
            LoadUnit(0, 0, size_bytes, 0, 1, -1),
            job,
            target,
            RequestBounds(request_timeout_s=request_timeout_s, retries_max=retries_max),
            UnitHooks(tick=ticks or Ticks(), throttle=throttle),
            later_us=later_us,
        )


@contextmanager
def connected_target(
    session: Session, prepared: PreparedStatement, keyspace: str
) -> Iterator[Target]:
    """Open the target that a worker process keeps for its writes."""
    plane = ConnectionPool(session, requests_max=1024, bytes_max=8 << 20)
    try:
        yield Target(session, plane, prepared, keyspace)
    finally:
        plane.close()


def read_table(
    session: Session, keyspace: str, columns: str, *, timeout_s: float = 60
) -> list[tuple[Any, ...]]:
    """Return all rows of `keyspace.t`, sorted by their text."""
    rows = session.execute(f"SELECT {columns} FROM {keyspace}.t", timeout=timeout_s)
    return sorted((tuple(row) for row in rows), key=repr)


def batch_warnings(logs: Mapping[Path, int], keyspace: str) -> list[str]:
    """Return warnings about batches for a keyspace in the nodes' logs since the offsets given."""
    found = []
    for log, offset in logs.items():
        text = log.read_bytes()[offset:].decode()
        warnings = [line for line in text.splitlines() if "WARN" in line and keyspace in line]
        found += [line for line in warnings if "batch" in line.lower()]
    return found
