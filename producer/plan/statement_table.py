"""What the tables of a prepared statement tell, as far as the cluster's schema has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from ringhaul.cluster.prepared import Prepared, PreparedColumn
from ringhaul.cluster.schema import TableSchema, appends
from ringhaul.cluster.view import ClusterView


def is_of_counters(cluster: ClusterView, prepared: Prepared) -> bool:
    """Return whether the table of the first marker has counters."""
    return "counter" in next(_types_of_tables(cluster, prepared), [])


def has_lists(cluster: ClusterView, prepared: Prepared) -> bool:
    """Return whether some marker's table has a list that is not frozen, see `schema.appends`."""
    return any(map(appends, chain.from_iterable(_types_of_tables(cluster, prepared))))


def column_order(cluster: ClusterView, prepared: Prepared) -> Sequence[str]:
    """Return the columns of the table of the first marker, in the table's order."""
    table = _table(cluster, prepared.markers[:1])
    return table.column_names if table else []


def partition_key_of(cluster: ClusterView, prepared: Prepared) -> Sequence[str]:
    """Return the partition key of the result's table.

    These columns have a value in every row; clustering columns have none in a partition that holds
    only static columns.
    """
    table = _table(cluster, prepared.result[:1])
    return table.partition_key if table else []


def _types_of_tables(cluster: ClusterView, prepared: Prepared) -> Iterator[list[str]]:
    """Yield for each marker the CQL types of its table's columns."""
    for marker in prepared.markers:
        table = _table(cluster, [marker])
        yield [column.cql_type for column in table.columns] if table else []


def _table(cluster: ClusterView, columns: Sequence[PreparedColumn]) -> TableSchema | None:
    """Return the table of the first column; None without one, and for a materialized view."""
    for column in columns:
        keyspace = cluster.keyspace(column.keyspace)
        if keyspace is not None and column.table in keyspace.tables:
            return cluster.table(column.keyspace, column.table)
    return None
