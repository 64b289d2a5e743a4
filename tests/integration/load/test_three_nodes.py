"""Three nodes: rows go to their replicas, and a load survives the loss of one."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest
from cassandra.cluster import Session
from cassandra.query import SimpleStatement

from producer.local.stack import Stack
from ringhaul.cluster.bundle import read_bundle
from ringhaul.cluster.connect import ClusterConfig, close_session, open_session
from ringhaul.dataplane.routing import Routing
from ringhaul.errors import ClusterError
from tests.acceptance.command import wait_until
from tests.integration.load.conftest import Ticks, cluster_config, make_table, run_file
from tests.loads import rejects_of
from tests.secure_bundle import managed_cluster
from tests.services import connected, fresh_keyspace

#: Short, so that a silent node is noticed within the test.
REQUEST_TIMEOUT_S = 1.5


@pytest.fixture(scope="module")
def three_session(three_nodes: Stack) -> Iterator[Session]:
    session = open_session(cluster_config(three_nodes.endpoints()))
    assert len(session.cluster.metadata.all_hosts()) == 3
    yield session
    assert close_session(session)


def test_rows_are_assigned_to_the_server_s_replicas(three_session: Session) -> None:
    # Given a keyspace of two replicas on three nodes
    with fresh_keyspace(three_session, replication_factor=2) as keyspace:
        three_session.cluster.refresh_schema_metadata()
        keys = [number.to_bytes(4, "big") for number in range(3000)]
        routing = Routing(three_session, keyspace)
        sets, tokens = routing.assign(pa.array(keys, pa.binary()))
        # Then each row's replica set equals the driver's for its key
        metadata = three_session.cluster.metadata
        for key, number, token in zip(keys, sets.tolist(), tokens.tolist(), strict=True):
            expected = metadata.get_replicas(keyspace, key)
            assert set(routing.replica_sets[number]) == set(expected)
            assert token == metadata.token_map.token_class.from_key(key).value
        # And all nodes get their share
        assert len({host for hosts in routing.replica_sets for host in hosts}) == 3
        assert np.unique(sets).size == len(routing.replica_sets)


def test_rows_go_to_their_replicas_through_a_proxy(
    three_nodes: Stack, three_session: Session, tmp_path: Path
) -> None:
    """It knows nodes by the host id in the TLS handshake; here with compressed requests, too."""
    hosts = three_session.cluster.metadata.all_hosts()
    nodes = {str(host.host_id): (str(host.address), host.endpoint.port) for host in hosts}
    path = tmp_path / "in.csv"
    path.write_text("".join(f"{i},v{i}\n" for i in range(3000)))
    with managed_cluster(tmp_path, nodes) as managed:
        config = ClusterConfig(
            contact_points=("no-host.invalid",),
            bundle=read_bundle(str(managed.bundle)),
            compression="lz4",
        )
        session = open_session(config)
        assert {str(host.address) for host in session.cluster.metadata.all_hosts()} == set(nodes)
        with fresh_keyspace(session, replication_factor=1) as keyspace:
            table = make_table(session, keyspace, "id int PRIMARY KEY, v text")
            before = managed.proxy.connections.copy()
            outcome = run_file(session, table, path, ["id", "v"], strategy="pipeline")
            # Each node got its rows on a connection of the data plane
            assert managed.proxy.connections - before == dict.fromkeys(nodes, 1)
            assert (outcome.written, rejects_of(outcome)) == (3000, [])
            query = SimpleStatement(f"SELECT id, v FROM {keyspace}.t", fetch_size=5000)
            rows = sorted(tuple(row) for row in three_session.execute(query))
            assert rows == [(i, f"v{i}") for i in range(3000)]
        assert close_session(session, 20)


@pytest.mark.parametrize("strategy", ["pipeline", "token-batch"])
def test_a_denied_node_gets_no_connection_and_its_rows_are_loaded(
    three_nodes: Stack, tmp_path: Path, strategy: str
) -> None:
    # Given a node whose ranges have no other replica
    ends = three_nodes.endpoints()
    denied = ends.contact_points[2]
    path = tmp_path / "in.csv"
    path.write_text("".join(f"{i},v{i}\n" for i in range(3000)))
    config = replace(
        cluster_config(ends), contact_points=ends.contact_points[:1], denied_nodes=(denied,)
    )
    of_others = connections(ends.port)  # those of the session that other tests share
    session = open_session(config)
    with fresh_keyspace(session, replication_factor=1) as keyspace:
        table = make_table(session, keyspace, "id int PRIMARY KEY, v text")
        # When a table is loaded
        ours: dict[int, str] = {}
        outcome = run_file(
            session,
            table,
            path,
            ["id", "v"],
            strategy=strategy,
            ticks=Ticks(then=lambda: ours.update(connections(ends.port))),
        )
        # Then this process has connections to the others only
        nodes = {node for local, node in ours.items() if local not in of_others}
        assert nodes == set(ends.contact_points[:2])
        # And every row is in the table
        assert (outcome.written, rejects_of(outcome)) == (3000, [])
        with connected(ends) as reading:
            rows = sorted(tuple(row) for row in reading.execute(f"SELECT id, v FROM {keyspace}.t"))
        assert rows == [(i, f"v{i}") for i in range(3000)]
    assert close_session(session)


def test_lists_that_leave_out_every_node_are_refused(three_nodes: Stack) -> None:
    ends = three_nodes.endpoints()
    config = replace(cluster_config(ends), allowed_nodes=("192.0.2.0/24",))
    with pytest.raises(ClusterError, match=f"leave out every node .*{ends.contact_points[0]}"):
        open_session(config)


def connections(port: int) -> dict[int, str]:
    """Return this process's connections to a port of nodes: local port -> node's address."""
    return {
        one.laddr.port: one.raddr.ip
        for one in psutil.Process().net_connections("tcp")
        if one.raddr and one.raddr.port == port
    }


@pytest.mark.parametrize("strategy", ["pipeline", "token-batch"])
def test_a_load_continues_when_a_replica_stops_answering(
    three_nodes: Stack, three_session: Session, tmp_path: Path, strategy: str
) -> None:
    # 1. Three replicas of each row, written at a quorum
    with fresh_keyspace(three_session, replication_factor=3) as keyspace:
        table = make_table(three_session, keyspace, "id int PRIMARY KEY, v text")
        path = tmp_path / "in.csv"
        # With single statements each block waits for its last timeout, hence fewer blocks.
        rows_count = 4000
        path.write_text("".join(f"{i},v{i}\n" for i in range(rows_count)))
        victim = three_nodes.nodes()[2].pid
        assert victim is not None
        stopped: list[int] = []

        ticked_at = [time.monotonic()]

        def strike() -> None:
            ticked_at.append(time.monotonic())
            # 2. One node is stopped after the first block, as on a hanging host
            if not stopped:
                os.kill(victim, signal.SIGSTOP)
                stopped.append(victim)

        try:
            outcome = run_file(
                three_session,
                table,
                path,
                ["id", "v"],
                strategy=strategy,
                consistency="QUORUM",
                block_bytes=4096,
                request_timeout_s=REQUEST_TIMEOUT_S,
                ticks=Ticks(then=strike),
            )
        finally:
            os.kill(victim, signal.SIGCONT)
        # 3. Then every row was still written, some of them at the second try
        assert stopped == [victim]
        assert (outcome.written, rejects_of(outcome)) == (rows_count, [])
        assert outcome.retries > 0
        # And the lease was renewed throughout, although requests timed out
        assert max(b - a for a, b in pairwise(ticked_at)) < REQUEST_TIMEOUT_S + 3
        read = SimpleStatement(f"SELECT id, v FROM {keyspace}.t", fetch_size=1000)
        rows = sorted(tuple(row) for row in three_session.execute(read, timeout=60))
        assert rows == [(i, f"v{i}") for i in range(rows_count)]
        wait_until(
            lambda: all(host.is_up for host in three_session.cluster.metadata.all_hosts()),
            "the node that was stopped",
        )
