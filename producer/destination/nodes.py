"""Preconditions shared by all loads that deliver SSTables to nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from cassandra import DriverException
from cassandra.cluster import NoHostAvailable

from config.settings import Settings
from producer.destination.layout import by_cql
from producer.text import bytes_text
from ringhaul.cluster.consistency import acknowledgements
from ringhaul.cluster.errors import translate_error
from ringhaul.cluster.schema import TableSchema
from ringhaul.cluster.tables import find_keyspace
from ringhaul.cluster.view import ClusterView
from ringhaul.errors import SetupUnusable, UsageError
from ringhaul.streaming.owners import Node, Owners, lacking
from ringhaul.streaming.ring import RingChanging
from tasks.cluster_settings import cluster_config

#: A table of ScyllaDB's `system` keyspace. Its nodes stream in another way.
_SCYLLA_TABLE = "scylla_local"


class Replicas(NamedTuple):
    """The nodes that own a keyspace's rows, and how many of them must have each row."""

    owners: Owners
    needed: Mapping[str | None, int]  #: see `acknowledgements`
    level: str  #: the consistency level

    @property
    def nodes(self) -> list[Node]:
        """All nodes that own rows."""
        return sorted({node for replicas in self.owners.sets for node in replicas})

    def needed_of(self, missing: Collection[Node]) -> Node | None:
        """Return one of the missing nodes without which some rows have too few replicas; None if
        enough are left."""
        having = set(self.nodes) - set(missing)
        for replicas in self.owners.sets:
            if lacking(self.needed, replicas, having):
                return next(node for node in replicas if node in missing)
        return None


def is_scylla(system_tables: Collection[str]) -> bool:
    """Return whether a cluster with these tables in `system` is ScyllaDB."""
    return _SCYLLA_TABLE in system_tables


def check_cluster(
    option: str, cluster: ClusterView, settings: Settings, *, scylla: str, ports: str
) -> None:
    """Raise `SetupUnusable` for a cluster whose nodes are not reached in this way. `scylla`: what
    ScyllaDB does instead; `ports`: the nodes' ports that are needed."""
    if is_scylla(find_keyspace(cluster, "system").tables):
        raise SetupUnusable(f"{option}: this cluster is ScyllaDB, which {scylla}")
    if settings.cluster.secure_connect_bundle is not None:
        raise SetupUnusable(
            f"{option} needs the nodes' {ports}, and the proxy of "
            "cluster.secure_connect_bundle leads to none of them: leave the option out"
        )


def read_replicas(option: str, cluster: ClusterView, keyspace: str, settings: Settings) -> Replicas:
    """Return who owns the rows of a keyspace. Raises `SetupUnusable`, which names `option`."""
    try:
        owners = cluster.owners(keyspace, settings.streaming.storage_port)
    except RingChanging as error:
        raise SetupUnusable(f"{option}: {error}") from error
    replication = cluster.replication(keyspace)
    if replication is None:
        raise SetupUnusable(
            f"{option}: keyspace {keyspace} has a replication strategy that is not known: "
            f"{by_cql(option)}"
        )
    level = settings.cluster.consistency
    return Replicas(owners, acknowledgements(level, replication, cluster.local_dc), level)


def check_input_bytes(option: str, setting: str, least_bytes: int, input_bytes: int) -> None:
    """Raise `UsageError` for an input that is smaller than a setting demands."""
    if input_bytes < least_bytes:
        raise UsageError(
            f"{option} is for large loads, and the sources have {bytes_text(input_bytes)}: "
            f"{by_cql(option)}; {setting}, now {bytes_text(least_bytes)}, decides"
        )


def check_writer(cluster: ClusterView, table: TableSchema, settings: Settings) -> None:
    """Raise `ClusterError` for a user who may not write to a table: the nodes' other ports do not
    check this."""
    try:
        cluster.check_may_write(table)
    except (DriverException, NoHostAvailable) as error:
        where = cluster_config(settings).where
        raise translate_error(error, where=where, user=settings.cluster.user) from error
