"""Plan a load that streams SSTables: whether the table, the cluster and its nodes allow it.

What cannot be streamed is refused here, before anything starts.
"""

from __future__ import annotations

from collections.abc import Sequence

from config.settings import Settings
from producer.destination.layout import by_cql, in_version, layout_of
from producer.destination.nodes import (
    Replicas,
    check_cluster,
    check_input_bytes,
    check_writer,
    read_replicas,
)
from producer.destination.way import LoadFacts, Way
from ringhaul.cluster.schema import TableSchema
from ringhaul.cluster.view import TableStorage
from ringhaul.destination.delivered import Streaming
from ringhaul.errors import SetupUnusable, UsageError
from ringhaul.sstables.version import SSTableVersion
from ringhaul.streaming.owners import Node
from ringhaul.streaming.session import StreamingUnsupported, connect, wants_encryption
from tasks.cluster_settings import streaming_tls

OPTION = "--via streaming"
#: How the driver calls indexes of class StorageAttachedIndex.
_SAI = ("sai", "storageattachedindex")


class StreamingWay(Way[Streaming]):
    """SSTables that go to the storage ports of the nodes."""

    def plan(self, facts: LoadFacts) -> Streaming:
        table, cluster, settings = facts.table, facts.cluster, facts.settings
        check_cluster(
            OPTION, cluster, settings, scylla="streams in another way", ports="storage ports"
        )
        layout = layout_of(OPTION, table, facts.cluster, facts.sources)
        _check_indexes(facts.storage, table)
        least_bytes = settings.streaming.input_bytes_min
        check_input_bytes(OPTION, "streaming.input_bytes_min", least_bytes, facts.input_bytes)
        check_writer(cluster, table, settings)
        version = _check_nodes(read_replicas(OPTION, cluster, table.keyspace, settings), settings)
        layout = in_version(
            version,
            layout,
            OPTION,
            facts.ttl_s,
            or_else="; nodes with storage_compatibility_mode NONE store later ones",
        )
        return Streaming(table_id=cluster.table_id(table.keyspace, table.table), layout=layout)


WAY = StreamingWay()


def is_sai(class_name: str) -> bool:
    """Return whether an index of this class is a storage-attached one (SAI)."""
    return class_name.lower() in _SAI


def _check_indexes(storage: TableStorage, table: TableSchema) -> None:
    """Raise `UsageError` for a table with an index that only writes or imports fill."""
    for name, kind in storage.custom_indexes:
        instead = "use --via import, or " if is_sai(kind) else ""
        raise UsageError(
            f"{OPTION} cannot fill {table.name}: its index {name!r} is of class {kind}, for which "
            f"nodes take no streamed SSTables; {instead}{by_cql(OPTION)}"
        )


def _check_nodes(replicas: Replicas, settings: Settings) -> SSTableVersion:
    """Return the latest version of SSTables that all nodes take.

    Raises `SetupUnusable` unless enough storage ports answer.
    """
    silent, version = probe(replicas.nodes, settings)
    node = replicas.needed_of(silent)
    if node is not None:
        raise SetupUnusable(
            f"{OPTION}: the storage port of {node} does not answer ({silent[node]}), and "
            f"{replicas.level} needs it: open it to this host and the workers, or {by_cql(OPTION)}"
        )
    return version


def probe(nodes: Sequence[Node], settings: Settings) -> tuple[dict[Node, str], SSTableVersion]:
    """Return the nodes whose storage port does not answer, and why; and the latest version of
    SSTables that the other nodes take. Silent nodes are taken to be like them.

    Raises `SetupUnusable` for a node that answers, but takes nothing from us.
    """
    tls = streaming_tls(settings)
    silent: dict[Node, str] = {}
    taken = {SSTableVersion.OA}
    for node in nodes:
        try:
            connection, versions = connect(node, tls)
            connection.close()
            taken.add(versions.sstables)
        except StreamingUnsupported as error:
            raise SetupUnusable(f"{OPTION}: {error}") from error
        except OSError as error:
            if tls is None and wants_encryption(node):
                raise SetupUnusable(
                    f"{OPTION}: {node} encrypts its storage port (internode_encryption): set "
                    "streaming.tls, with tls_ca, tls_cert and tls_key"
                ) from error
            silent[node] = str(error.strerror or error)
    return silent, min(taken)
