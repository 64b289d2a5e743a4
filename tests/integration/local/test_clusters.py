"""Stacks other than one open node: three nodes, and one with passwords."""

from dataclasses import replace

import pytest
from cassandra import AuthenticationFailed, ConsistencyLevel
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, NoHostAvailable
from cassandra.query import SimpleStatement

from producer.local.stack import Stack
from tests.services import connected, fresh_keyspace, running_stack


def test_three_nodes_hold_three_copies(three_nodes: Stack) -> None:
    ends = three_nodes.endpoints()
    assert ends.contact_points == ["127.0.1.1", "127.0.1.2", "127.0.1.3"]
    with connected(ends) as session, fresh_keyspace(session, replication_factor=3) as keyspace:
        session.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY, v int)")
        insert = session.prepare(f"INSERT INTO {keyspace}.t (id, v) VALUES (?, ?)")
        insert.consistency_level = ConsistencyLevel.ALL
        for i in range(100):
            session.execute(insert, (i, i * i))
        for level in (ConsistencyLevel.QUORUM, ConsistencyLevel.ALL):
            rows = session.execute(
                SimpleStatement(f"SELECT id, v FROM {keyspace}.t", consistency_level=level)
            )
            assert sorted((row.id, row.v) for row in rows) == [(i, i * i) for i in range(100)]
        token_map = session.cluster.metadata.token_map
        replicas = token_map.get_replicas(
            keyspace, token_map.token_class.from_key(b"\x00\x00\x00\x01")
        )
        assert len(replicas) == 3


def test_each_of_three_nodes_announces_all_three_to_drivers(three_nodes: Stack) -> None:
    ends = three_nodes.endpoints()
    for address in ends.contact_points:
        with connected(replace(ends, contact_points=[address])) as session:
            hosts = session.cluster.metadata.all_hosts()
            assert sorted(host.address for host in hosts) == ends.contact_points


def test_a_stack_with_passwords_checks_them() -> None:
    with running_stack(auth=True) as stack:
        ends = stack.endpoints()
        with connected(ends) as session:
            assert session.execute("SELECT role FROM system_auth.roles").one().role == "cassandra"
        environment = stack.env()
        assert environment["RINGHAUL_CLUSTER_USER"] == "cassandra"
        wrong = Cluster(
            ends.contact_points,
            port=ends.port,
            auth_provider=PlainTextAuthProvider("cassandra", "not this"),
            protocol_version=5,
        )
        try:
            with pytest.raises(NoHostAvailable) as caught:
                wrong.connect()
        finally:
            wrong.shutdown()
        assert all(isinstance(e, AuthenticationFailed) for e in caught.value.errors.values())
