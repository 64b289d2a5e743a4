"""What cannot be written to SSTables or streamed is refused, with the reason and what to do.

Clusters that cannot be started here are played by what the driver reports of them.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from cassandra.metadata import NetworkTopologyStrategy, SimpleStrategy, TableMetadata

from config.settings import Settings
from producer.plan.sstable_stream import is_scylla, plan_stream
from producer.plan.sstables import plan_layout
from ringhaul.cluster.schema import ColumnSchema, TableSchema
from ringhaul.errors import EXIT_USAGE, SetupUnusable, UsageError
from ringhaul.sstables.layout import Layout

MURMUR3 = "org.apache.cassandra.dht.Murmur3Partitioner"
TABLE = TableSchema(
    keyspace="shop",
    table="orders",
    columns=(ColumnSchema(name="id", cql_type="int"), ColumnSchema(name="note", cql_type="text")),
    partition_key=("id",),
    clustering_key=(),
)


def host(version: str, dse: str | None = None) -> Any:
    return SimpleNamespace(address="10.0.0.7", release_version=version, dse_version=dse)


def plan(
    *,
    partitioner: str = MURMUR3,
    hosts: tuple[Any, ...] = (host("5.0.2"),),
    replication: dict[str, str] | None = None,
    triggers: tuple[str, ...] = (),
    table: TableSchema = TABLE,
) -> Layout:
    described = TableMetadata("shop", "orders", triggers={name: object() for name in triggers})
    described.columns = {
        column.name: SimpleNamespace(is_reversed=False) for column in table.columns
    }
    strategy = (
        SimpleStrategy({"replication_factor": "3"})
        if replication is None
        else NetworkTopologyStrategy(replication)
    )
    keyspace = SimpleNamespace(tables={"orders": described}, replication_strategy=strategy)
    metadata: Any = SimpleNamespace(
        keyspaces={"shop": keyspace}, partitioner=partitioner, all_hosts=lambda: hosts
    )
    return plan_layout("--via streaming", table, metadata, [], 0)


def test_a_usual_cluster_is_taken() -> None:
    assert plan().partition_key_class.endswith("Int32Type")
    assert plan(hosts=(host("4.0.17"), host("4.1.9"))).chunk_bytes == 0
    assert plan(replication={"dc1": "3"})


@pytest.mark.parametrize(
    ("cluster", "kind", "why"),
    [
        (
            {"partitioner": "org.apache.cassandra.dht.RandomPartitioner"},
            SetupUnusable,
            "this cluster has org.apache.cassandra.dht.RandomPartitioner; only Murmur3Partitioner",
        ),
        (
            {"partitioner": "org.apache.cassandra.dht.ByteOrderedPartitioner"},
            SetupUnusable,
            "ByteOrderedPartitioner; only Murmur3Partitioner is supported",
        ),
        (
            {"hosts": (host("4.0.11"), host("4.0.0.6816", dse="6.8.16"))},
            SetupUnusable,
            "10.0.0.7 runs version DSE 6.8.16; SSTables of version nb are for Apache Cassandra",
        ),
        ({"hosts": (host("3.11.19"),)}, SetupUnusable, "runs version 3.11.19"),
        ({"hosts": (host("6.0-alpha1"),)}, SetupUnusable, "runs version 6.0-alpha1"),
        ({"hosts": (host(""),)}, SetupUnusable, "runs version unknown"),
        (
            {"replication": {"dc1": "3/1"}},
            SetupUnusable,
            "keyspace 'shop' has transient replicas, which need writes over CQL",
        ),
        (
            {"triggers": ("audit",)},
            UsageError,
            "cannot fill shop.orders: it has triggers, which run with writes; load it over CQL",
        ),
    ],
)
def test_other_clusters_and_tables_are_refused(
    cluster: dict[str, Any], kind: type[UsageError], why: str
) -> None:
    with pytest.raises(UsageError) as refused:
        plan(**cluster)

    assert type(refused.value) is kind
    assert refused.value.exit_code == EXIT_USAGE
    assert str(refused.value).startswith("--via streaming")
    assert why in str(refused.value)


def test_scylladb_is_refused() -> None:
    system = SimpleNamespace(tables={"local": object(), "scylla_local": object()})
    metadata = SimpleNamespace(keyspaces={"system": system})
    session: Any = SimpleNamespace(cluster=SimpleNamespace(metadata=metadata))

    with pytest.raises(SetupUnusable, match="this cluster is ScyllaDB, which streams in another"):
        plan_stream(TABLE, session, Settings(), [], 0, 2**40)


def test_scylladb_is_known_by_a_table() -> None:
    assert is_scylla({"local": object(), "peers": object(), "scylla_local": object()})
    assert not is_scylla({"local": object(), "peers": object(), "peers_v2": object()})
