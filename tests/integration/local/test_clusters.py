"""A stack of three nodes. One with passwords: tests/integration/cluster/test_login.py."""

from dataclasses import replace

from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

from producer.local.stack import Stack
from tests.services import connected, fresh_keyspace


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
