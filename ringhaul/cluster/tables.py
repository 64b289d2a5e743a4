"""Tables and keyspaces by name, with words for names that do not exist. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ringhaul.cluster.schema import TableSchema, nearest
from ringhaul.cql.names import spell_name
from ringhaul.errors import ClusterError

if TYPE_CHECKING:
    from ringhaul.cluster.view import ClusterView, KeyspaceSchema

#: Replicas of a suggested keyspace in each data centre, if it has as many nodes.
_REPLICAS = 3


class TableMissing(ClusterError):
    """The keyspace has no table of this name."""


def find_table(
    cluster: ClusterView, keyspace: str, table: str, *, views: bool = False
) -> TableSchema:
    """Return the schema of one table, or with `views` of a materialized view.

    Raises `TableMissing`, and `ClusterError` for a missing keyspace; both suggest the nearest name.
    Without `views`, a materialized view raises `ClusterError`.
    """
    known = find_keyspace(cluster, keyspace)
    if table in known.views and not views:
        raise ClusterError(
            f"{keyspace}.{table} is a materialized view, which only the cluster writes: name its "
            f"table, {known.views[table]}"
        )
    found = cluster.table(keyspace, table)
    if found is None:
        where = "it has no table" if not known.tables else ""
        hint = nearest(table, known.tables) or (f"; {where}" if where else "")
        raise TableMissing(f"no table {table!r} in keyspace {keyspace!r}{hint}")
    return found


def find_keyspace(cluster: ClusterView, keyspace: str) -> KeyspaceSchema:
    """Return one keyspace. Raises `ClusterError` that suggests the nearest name, or the statement
    that makes the keyspace."""
    found = cluster.keyspace(keyspace)
    if found is not None:
        return found
    hint = nearest(keyspace, cluster.keyspace_names) or (
        "; this makes it (cqlsh, or `ringhaul local cql` for the local stack): "
        f"{keyspace_statement(cluster, keyspace)}"
    )
    raise ClusterError(f"no keyspace {keyspace!r} in this cluster{hint}")


def keyspace_statement(cluster: ClusterView, keyspace: str) -> str:
    """Return a CREATE KEYSPACE with three replicas in each data centre, or as many as it has
    nodes."""
    nodes = Counter(node.data_centre for node in cluster.nodes if node.data_centre)
    replicas = ", ".join(
        f"'{name}': {min(count, _REPLICAS)}" for name, count in sorted(nodes.items())
    )
    return (
        f"CREATE KEYSPACE {spell_name(keyspace)} WITH replication = "
        f"{{'class': 'NetworkTopologyStrategy', {replicas}}};"
    )
