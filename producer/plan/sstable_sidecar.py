"""Plan a load whose SSTables nodes import through their Cassandra Sidecars: whether the table, the
cluster and the Sidecars allow it.

What cannot be imported is refused here, before anything starts. Each Sidecar is tried once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cassandra.cluster import Session

from config.settings import Settings
from producer.plan.sstable_import import CALL_S, check_answers, check_indexes
from producer.plan.sstable_nodes import (
    check_cluster,
    check_input_bytes,
    check_writer,
    read_replicas,
)
from producer.plan.sstables import in_version, layout_of
from ringhaul.cluster.schema import TableSchema
from ringhaul.imports.sidecar import SidecarSession
from ringhaul.records.job import LoadSource
from ringhaul.records.sstable_stream import SSTableStream
from ringhaul.sstables.version import SSTableVersion
from ringhaul.streaming.owners import Node
from ringhaul.streaming.ring import read_table_id
from tasks.connect import sidecar_access

OPTION = "--via sidecar"
_ADVICE = (
    "Open the port to this host and the workers, or say where Sidecars are with sidecar.host and "
    "sidecar.port"
)


def plan_sidecar(
    table: TableSchema,
    session: Session,
    settings: Settings,
    sources: Sequence[LoadSource],
    ttl_s: int,
    input_bytes: int,
) -> SSTableStream:
    """Return what nodes import.

    Raises `UsageError` for a table or an input that is not for imports, and `SetupUnusable` for
    Sidecars that would take nothing from here; `ClusterError` for a user who may not write to the
    table, which Sidecar need not ask.
    """
    metadata = session.cluster.metadata
    check_cluster(OPTION, session, settings, scylla="has no Sidecar", ports="Sidecars")
    layout = layout_of(OPTION, table, metadata, sources)
    layout = in_version(SSTableVersion.NB, layout, OPTION, ttl_s)  # all nodes read it
    check_indexes(OPTION, metadata.keyspaces[table.keyspace].tables[table.table], table)
    least_bytes = settings.sidecar.input_bytes_min
    check_input_bytes(OPTION, "sidecar.input_bytes_min", least_bytes, input_bytes)
    check_writer(session, table, settings)
    planned = SSTableStream(
        table_id=read_table_id(session, table.keyspace, table.table),
        layout=layout,
        by_sidecar=True,
    )
    given = sidecar_access(settings)
    sidecar = replace(
        given,
        request_timeout_s=min(given.request_timeout_s, CALL_S),
        import_timeout_s=min(given.import_timeout_s, CALL_S),
    )

    def probe(node: Node) -> None:
        SidecarSession(node, sidecar, table.keyspace, table.table).probe()

    replicas = read_replicas(OPTION, session, table.keyspace, settings)
    check_answers(OPTION, replicas, session, probe, _ADVICE)
    return planned
