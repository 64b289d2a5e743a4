"""What cannot be written to SSTables or streamed is refused, with the reason and what to do.

Clusters that cannot be started here are played by what the driver reports of them.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra.metadata import (
    IndexMetadata,
    LocalStrategy,
    NetworkTopologyStrategy,
    SimpleStrategy,
    TableMetadata,
)

from config.settings import Settings
from producer.destination.imports import ImportsWay, import_needs
from producer.destination.layout import in_version, layout_of
from producer.destination.nodes import is_scylla
from producer.destination.streaming import StreamingWay, is_sai, probe
from producer.destination.way import LoadFacts
from producer.request.destination import Wanted
from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.schema import ColumnSchema, TableSchema
from ringhaul.cluster.view import ClusterView
from ringhaul.errors import EXIT_USAGE, SetupUnusable, UsageError
from ringhaul.sstables.layout import Layout
from ringhaul.sstables.version import SSTableVersion
from ringhaul.streaming.owners import Node
from tests.ports import closed_port
from tests.unit.streaming.test_session import accepted, answering

MURMUR3 = "org.apache.cassandra.dht.Murmur3Partitioner"
TABLE = TableSchema(
    keyspace="shop",
    table="orders",
    columns=(ColumnSchema(name="id", cql_type="int"), ColumnSchema(name="note", cql_type="text")),
    partition_key=("id",),
    clustering_key=(),
)

#: No version has such a table yet.
BY_DURATION = replace(
    TABLE,
    columns=(*TABLE.columns, ColumnSchema(name="length", cql_type="frozen<list<duration>>")),
    clustering_key=("length",),
)


def host(version: str, dse: str | None = None) -> Any:
    return SimpleNamespace(
        address="10.0.0.7",
        host_id="host-1",
        datacenter="dc1",
        release_version=version,
        dse_version=dse,
        broadcast_address="10.0.0.7",
        is_up=True,
    )


def view(metadata: Any) -> DriverView:
    """Return the view of a session whose driver has this metadata."""
    session: Any = SimpleNamespace(cluster=SimpleNamespace(metadata=metadata))
    return DriverView(session)


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
        column.name: SimpleNamespace(name=column.name, is_reversed=False)
        for column in table.columns
    }
    strategy = (
        SimpleStrategy({"replication_factor": "3"})
        if replication is None
        else NetworkTopologyStrategy(replication)
    )
    keyspace = SimpleNamespace(
        tables={"orders": described},
        views={},
        user_types={},
        virtual=False,
        replication_strategy=strategy,
    )
    metadata: Any = SimpleNamespace(
        keyspaces={"shop": keyspace}, partitioner=partitioner, all_hosts=lambda: hosts
    )
    return layout_of("--via streaming", table, view(metadata), [])


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
            {"table": BY_DURATION},
            UsageError,
            "cannot sort rows by 'length' of shop.orders yet, a clustering column of type "
            "frozen<list<duration>>: load it over CQL",
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


def load_facts(cluster: ClusterView) -> LoadFacts:
    """Return the facts of a large load into `TABLE`."""
    return LoadFacts(
        wanted=Wanted(),
        table=TABLE,
        sources=[],
        ttl_s=0,
        input_bytes=2**40,
        processes=2,
        cluster=cluster,
        settings=Settings(),
    )


def system_of(*tables: str) -> Any:
    """Return the keyspace `system` with these tables."""
    return SimpleNamespace(
        tables=dict.fromkeys(tables, object()),
        views={},
        user_types={},
        virtual=False,
        replication_strategy=LocalStrategy({}),
    )


def test_scylladb_is_refused() -> None:
    system = system_of("local", "scylla_local")
    cluster = view(SimpleNamespace(keyspaces={"system": system}))

    with pytest.raises(SetupUnusable, match="this cluster is ScyllaDB, which streams in another"):
        StreamingWay().plan(load_facts(cluster))
    with pytest.raises(SetupUnusable, match="this cluster is ScyllaDB, which imports in another"):
        ImportsWay().plan(load_facts(cluster))


def test_scylladb_is_known_by_a_table() -> None:
    assert is_scylla({"local": object(), "peers": object(), "scylla_local": object()})
    assert not is_scylla({"local": object(), "peers": object(), "peers_v2": object()})


def version_taken_by(*messaging: int) -> SSTableVersion:
    """Return the version of SSTables for nodes of these messaging versions; 0: one is down."""
    with ExitStack() as stack:
        nodes = []
        for version in messaging:

            def serve(connection: socket.socket, number: int, version: int = version) -> None:
                connection.recv(1000)
                connection.sendall(accepted(version))

            if version:
                nodes.append(stack.enter_context(answering(serve)))
            else:
                port = stack.enter_context(closed_port())
                nodes.append(Node(address="127.0.0.1", port=port))
        silent, found = probe(nodes, Settings())
        assert len(silent) == messaging.count(0)
        return found


def test_the_version_of_sstables_is_one_that_all_nodes_take() -> None:
    assert version_taken_by(12, 12) is SSTableVersion.NB
    assert version_taken_by(13, 13) is SSTableVersion.OA
    assert version_taken_by(12, 13) is version_taken_by(13, 12) is SSTableVersion.NB
    # One that is down is taken to be like the others
    assert version_taken_by(13, 0) is SSTableVersion.OA
    assert version_taken_by(0, 12) is SSTableVersion.NB


@pytest.mark.parametrize(("ttl_s", "default_s"), [(600_000_000, 0), (0, 600_000_000)])
def test_only_the_later_version_stores_ttls_beyond_2038(ttl_s: int, default_s: int) -> None:
    layout = replace(plan(), written_s=1_760_000_000, default_ttl_s=default_s)

    with pytest.raises(UsageError) as refused:
        in_version(SSTableVersion.NB, layout, "--to-sstables", ttl_s, or_else=", or else")

    assert str(refused.value) == (
        "--to-sstables: a TTL of 600000000 s ends after 2038-01-19, the last day that SSTables of "
        "version nb store: give a shorter --ttl, or else"
    )
    found = in_version(SSTableVersion.OA, layout, "--to-sstables", ttl_s)
    assert found == replace(layout, version=SSTableVersion.OA)
    assert in_version(SSTableVersion.NB, layout, "--to-sstables", 60).version is SSTableVersion.NB


def test_an_index_of_another_class_than_sai_is_not_imported() -> None:
    described = TableMetadata("shop", "orders")
    described.columns = {
        c.name: SimpleNamespace(name=c.name, is_reversed=False) for c in TABLE.columns
    }
    index = {"class_name": "org.apache.cassandra.index.sasi.SASIIndex"}
    described.indexes = {"by_note": IndexMetadata("shop", "orders", "by_note", "CUSTOM", index)}
    keyspace = SimpleNamespace(
        tables={"orders": described},
        views={},
        user_types={},
        virtual=False,
        replication_strategy=SimpleStrategy({"replication_factor": "3"}),
    )
    metadata = SimpleNamespace(
        keyspaces={"shop": keyspace, "system": system_of()},
        partitioner=MURMUR3,
        all_hosts=lambda: (host("5.0.2"),),
    )
    settings = Settings(imports={"folder": "/mnt/imports"})  # type: ignore[arg-type]

    with pytest.raises(UsageError, match="index 'by_note' is of class SASIIndex, and only SAI was"):
        ImportsWay().plan(replace(load_facts(view(metadata)), settings=settings))


def test_sai_is_known_under_all_its_names() -> None:
    assert is_sai("sai")
    assert is_sai("StorageAttachedIndex")
    assert not is_sai("SASIIndex")


def test_folders_of_imports_need_room_for_each_node_on_their_way(tmp_path: Path) -> None:
    here, down = Node(address="10.0.0.1", port=7000), Node(address="10.0.0.2", port=7000)
    (tmp_path / "10.0.0.1").mkdir()

    (need,) = import_needs(f"{tmp_path}/{{node}}", [here, down], 5)
    (both,) = import_needs(str(tmp_path), [here, down], 5)

    assert (need.folder, need.bytes_count) == (f"{tmp_path}/10.0.0.1", 5)
    assert (both.folder, both.bytes_count) == (str(tmp_path), 10)
