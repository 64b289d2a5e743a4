"""A `PipelineWriter` with scripted servers: real driver objects, but no driver session.

The conftest.py of a folder imports the fixtures that its tests need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from cassandra import ConsistencyLevel
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile, Session
from cassandra.connection import DefaultEndPoint
from cassandra.metadata import KeyspaceMetadata
from cassandra.policies import RoundRobinPolicy, SimpleConvictionPolicy
from cassandra.pool import Host
from cassandra.query import PreparedStatement

from ringhaul.cql.cells import Cells, routing_keys
from ringhaul.dataplane import choice, dispatcher, retry
from ringhaul.dataplane import pool as plane
from ringhaul.dataplane.base import RequestOptions, Target
from ringhaul.dataplane.pacing import FREE, Leave
from ringhaul.dataplane.pool import ConnectionPool
from ringhaul.formats.split import START, Block
from ringhaul.load.write.base import WriterHooks
from ringhaul.load.write.pipeline import PipelineWriter, SingleWriter
from ringhaul.records.rows import EncodedRows
from tests.scripted_server import ScriptedServer, query_id, scripted_servers
from tests.services import patient_cluster

KEYSPACE = "shop"
ROWS = 2000
STATEMENT = "INSERT INTO shop.orders (id, v) VALUES (?, ?) USING TIMESTAMP ?"
PREPARED = PreparedStatement([], query_id(STATEMENT), [0], STATEMENT, None, 4, [], None)


class Stop(Exception):
    """Raised by a test's hook to stop a unit."""


@pytest.fixture
def servers() -> Iterator[list[ScriptedServer]]:
    """A single server; a module whose tests need more overrides this."""
    with scripted_servers() as one:
        yield one


@pytest.fixture
def server(servers: list[ScriptedServer]) -> ScriptedServer:
    """The only server of `servers`."""
    [only] = servers
    return only


@pytest.fixture
def client(servers: list[ScriptedServer]) -> Iterator[Client]:
    """A client of `servers`, each of which owns a part of the rows."""
    with connected_client(servers) as connected:
        yield connected


def check_all_written(
    writer: PipelineWriter, *servers: ScriptedServer, rows: int = ROWS, first: int = 0
) -> None:
    """Assert that every row was acknowledged, and counted once however often it was sent."""
    written = sum((server.written for server in servers), Counter[int]())
    assert set(written) == set(range(first, first + rows))
    assert writer.stats.written == rows
    assert writer.stats.window is not None


def encoded_rows(first: int, count: int, payload_bytes: int = 8) -> EncodedRows:
    """Return rows with the ids first..first+count-1, which are also their record numbers."""
    ids = np.arange(first, first + count, dtype=np.int64)
    key = Cells.fixed(ids.astype(">i8"))
    payload = Cells.variable(pa.array([b"v" * payload_bytes] * count, pa.binary()))
    nothing = np.zeros(0, np.int64)
    block = Block(b"", START, nothing, nothing, None, 0)
    return EncodedRows([key, payload, key], routing_keys([key]), ids, block)


@dataclass
class Client:
    """One worker process: its state from unit to unit, and the calls of its hooks."""

    session: Session
    hosts: list[Host]
    plane: ConnectionPool
    request_timeout_s: float = 10.0
    retries_max: int = 8
    ticks: int = 0
    throttled: int = 0
    rejected: list[tuple[int, str]] = field(default_factory=list)
    on_tick: Callable[[], None] = lambda: None
    on_throttle: Callable[[int], None] = lambda rows: None
    leave: Leave = FREE
    batches: bool = False  #: strategy `pipeline` instead of `single`

    def writer(self) -> PipelineWriter:
        options = RequestOptions(
            consistency=ConsistencyLevel.LOCAL_QUORUM,
            requests_in_flight_max=1024,
            requests_far_max=1024,
            bytes_in_flight_max=1 << 20,
            retries_max=self.retries_max,
            request_timeout_s=self.request_timeout_s,
        )
        hooks = WriterHooks(
            tick=self._tick,
            throttle=self._throttle,
            on_reject=self._reject,
            leave=lambda: self.leave,
        )
        made = PipelineWriter if self.batches else SingleWriter
        return made(Target(self.session, self.plane, PREPARED, KEYSPACE), options, hooks)

    def load(self, rows: int, *, block: int = 500, first: int = 0) -> PipelineWriter:
        """Load rows as one unit, in blocks of `block`."""
        writer = self.writer()
        for begin in range(first, first + rows, block):
            writer.write(encoded_rows(begin, min(block, first + rows - begin)))
        writer.flush()
        return writer

    def _tick(self) -> None:
        self.ticks += 1
        self.on_tick()

    def _throttle(self, rows: int) -> None:
        self.throttled += rows
        self.on_throttle(rows)

    def _reject(self, rows: EncodedRows, row: int, reason: str) -> None:
        self.rejected.append((int(rows.records[row]), reason))


def stop_once(client: Client, holds: Callable[[], bool]) -> None:
    """Stop its unit ten ticks after a condition holds, so that more than that would be noticed; or
    after a thousand ticks."""
    held_for = 0

    def on_tick() -> None:
        nonlocal held_for
        held_for += bool(held_for or holds())
        if held_for == 10 or client.ticks > 1000:
            raise Stop

    client.on_tick = on_tick


@contextmanager
def connected_client(
    servers: Sequence[ScriptedServer], *, replicas: int = 1, password: str | None = None
) -> Iterator[Client]:
    """Return a client of a ring of these servers, on which the statement counts as prepared.

    Within the block, pauses and timeouts are short.
    """
    auth = PlainTextAuthProvider("loader", password) if password is not None else None
    policy = RoundRobinPolicy()
    profile = ExecutionProfile(load_balancing_policy=policy)
    cluster = patient_cluster(
        ["127.0.0.1"],
        auth_provider=auth,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
    )
    try:
        hosts = []
        for server in servers:
            server.known.add(PREPARED.query_id)
            host = Host(DefaultEndPoint("127.0.0.1", server.port), SimpleConvictionPolicy)
            host.set_location_info("dc1", "rack1")
            hosts.append(cluster.metadata.add_or_return_host(host)[0])
        strategy: dict[str, Any] = {"replication_factor": str(replicas)}
        cluster.metadata.keyspaces[KEYSPACE] = KeyspaceMetadata(
            KEYSPACE, True, "SimpleStrategy", strategy
        )
        # Each host owns an equal part of the ring
        tokens = {
            host: [str(-(2**63) + (number + 1) * (2**64 // len(hosts)) - 1)]
            for number, host in enumerate(hosts)
        }
        cluster.metadata.rebuild_token_map("org.apache.cassandra.dht.Murmur3Partitioner", tokens)
        policy.populate(cluster, hosts)
        session = cast(
            Session,
            SimpleNamespace(
                cluster=cluster,
                get_execution_profile=lambda name: cluster.profile_manager.profiles[name],
            ),
        )
        with pytest.MonkeyPatch.context() as patch:
            _quicken(patch)
            plane = ConnectionPool(session, requests_max=1024, bytes_max=1 << 20)
            try:
                yield Client(session, hosts, plane)
            finally:
                plane.close()
    finally:
        cluster.shutdown()


def _quicken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten pauses and timeouts."""
    monkeypatch.setattr(retry, "BACKOFF_FIRST_S", 0.01)
    monkeypatch.setattr(retry, "BACKOFF_MAX_S", 0.1)
    monkeypatch.setattr(dispatcher, "TICK_S", 0.02)
    monkeypatch.setattr(choice, "NO_REPLICA_S", 0.5)
    monkeypatch.setattr(plane, "CONNECT_TIMEOUT_S", 1.0)
