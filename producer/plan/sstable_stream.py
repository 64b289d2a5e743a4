"""Plan a load that streams SSTables: whether the table, the cluster and its nodes allow it.

What cannot be streamed is refused here, before anything starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cassandra import DriverException
from cassandra.cluster import NoHostAvailable, Session

from config.settings import Settings
from producer.plan.sstables import by_cql, plan_layout
from producer.text import bytes_text
from ringhaul.cluster.consistency import acknowledgements, replication_of
from ringhaul.cluster.datacentres import local_dc_of
from ringhaul.cluster.errors import translate_error
from ringhaul.cluster.permission import check_may_write
from ringhaul.cluster.schema import TableSchema
from ringhaul.errors import SetupUnusable, UsageError
from ringhaul.records.job import LoadSource
from ringhaul.records.sstable_stream import SSTableStream
from ringhaul.streaming.owners import Node, Owners, lacking
from ringhaul.streaming.ring import RingChanging, read_owners, read_table_id
from ringhaul.streaming.session import StreamingUnsupported, connect, wants_encryption
from tasks.connect import cluster_config, streaming_tls

if TYPE_CHECKING:
    from cassandra.metadata import TableMetadata

OPTION = "--via streaming"
#: A table of ScyllaDB's `system` keyspace. Its nodes stream in another way.
_SCYLLA_TABLE = "scylla_local"


def plan_stream(
    table: TableSchema,
    session: Session,
    settings: Settings,
    sources: Sequence[LoadSource],
    ttl_s: int,
    input_bytes: int,
) -> SSTableStream:
    """Return what is streamed.

    Raises `UsageError` for a table or an input that is not for streaming, and `SetupUnusable` for a
    cluster to which nothing can be streamed from here; `ClusterError` for a user who may not write
    to the table, which the storage port would not ask.
    """
    metadata = session.cluster.metadata
    if is_scylla(metadata.keyspaces["system"].tables):
        raise SetupUnusable(f"{OPTION}: this cluster is ScyllaDB, which streams in another way")
    if settings.cluster.secure_connect_bundle is not None:
        raise SetupUnusable(
            f"{OPTION} needs the nodes' storage ports, and the proxy of "
            "cluster.secure_connect_bundle leads to none of them: leave the option out"
        )
    layout = plan_layout(OPTION, table, metadata, sources, ttl_s)
    _check_indexes(metadata.keyspaces[table.keyspace].tables[table.table], table)
    least_bytes = settings.streaming.input_bytes_min
    if input_bytes < least_bytes:
        raise UsageError(
            f"{OPTION} is for large loads, and the sources have {bytes_text(input_bytes)}: "
            f"{by_cql(OPTION)}; streaming.input_bytes_min, now {bytes_text(least_bytes)}, decides"
        )
    try:
        check_may_write(session, table)
    except (DriverException, NoHostAvailable) as error:
        where = cluster_config(settings).where
        raise translate_error(error, where=where, user=settings.cluster.user) from error
    _check_nodes(session, table.keyspace, settings)
    return SSTableStream(
        table_id=read_table_id(session, table.keyspace, table.table), layout=layout
    )


def is_scylla(system_tables: Mapping[str, Any]) -> bool:
    """Return whether a cluster with these tables in `system` is ScyllaDB."""
    return _SCYLLA_TABLE in system_tables


def _check_indexes(described: TableMetadata, table: TableSchema) -> None:
    """Raise `UsageError` for a table with an index that only writes or imports fill."""
    for index in described.indexes.values():
        if index.kind == "CUSTOM":
            name = str(index.index_options.get("class_name", "custom")).rpartition(".")[2]
            raise UsageError(
                f"{OPTION} cannot fill {table.name}: its index {index.name!r} is of class {name}, "
                "for which nodes take no streamed SSTables; use --to-sstables and `nodetool "
                f"import`, or {by_cql(OPTION)}"
            )


def _check_nodes(session: Session, keyspace: str, settings: Settings) -> None:
    """Raise `SetupUnusable` unless enough storage ports answer."""
    try:
        owners = read_owners(session, keyspace, settings.streaming.storage_port)
    except RingChanging as error:
        raise SetupUnusable(f"{OPTION}: {error}") from error
    replication = replication_of(session, keyspace)
    if replication is None:
        raise SetupUnusable(
            f"{OPTION}: keyspace {keyspace} has a replication strategy that is not known: "
            f"{by_cql(OPTION)}"
        )
    level = settings.cluster.consistency
    needed = acknowledgements(level, replication, local_dc_of(session))
    silent = _silent(owners, settings)
    having = {node for replicas in owners.sets for node in replicas} - set(silent)
    for replicas in owners.sets:
        if lacking(needed, replicas, having):
            node, why = next((n, silent[n]) for n in replicas if n in silent)
            raise SetupUnusable(
                f"{OPTION}: the storage port of {node} does not answer ({why}), and {level} needs "
                f"it: open it to this host and the workers, or {by_cql(OPTION)}"
            )


def _silent(owners: Owners, settings: Settings) -> dict[Node, str]:
    """Return the nodes whose storage port does not answer, and why.

    Raises `SetupUnusable` for one that does, but takes nothing from us.
    """
    tls = streaming_tls(settings)
    silent: dict[Node, str] = {}
    for node in sorted({node for replicas in owners.sets for node in replicas}):
        try:
            connection, _ = connect(node, tls)
            connection.close()
        except StreamingUnsupported as error:
            raise SetupUnusable(f"{OPTION}: {error}") from error
        except OSError as error:
            if tls is None and wants_encryption(node):
                raise SetupUnusable(
                    f"{OPTION}: {node} encrypts its storage port (internode_encryption): set "
                    "streaming.tls, with tls_ca, tls_cert and tls_key"
                ) from error
            silent[node] = str(error.strerror or error)
    return silent
