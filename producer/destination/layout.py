"""Plan the SSTables of a load: what they contain, and whether the table and the cluster allow it.

What cannot be written exactly is refused here, before anything starts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ringhaul.cluster.schema import ColumnSchema, TableSchema
from ringhaul.cluster.tables import find_keyspace
from ringhaul.cluster.view import ClusterView, TableStorage
from ringhaul.cql.types import CqlType
from ringhaul.errors import SetupUnusable, UsageError
from ringhaul.records.job import LoadSource
from ringhaul.sstables.comparable import has_order, is_comparable, structure
from ringhaul.sstables.layout import Column, Layout
from ringhaul.sstables.marshal import (
    class_name,
    composite_class,
    fixed_width,
    is_multi_cell,
    multi_cell_class,
)
from ringhaul.sstables.version import SSTableVersion

#: Major versions of Cassandra that read format nb.
_VERSIONS = (4, 5)
_PARTITIONER = "org.apache.cassandra.dht.Murmur3Partitioner"


def layout_of(
    option: str, table: TableSchema, cluster: ClusterView, sources: Sequence[LoadSource]
) -> Layout:
    """Return what SSTables of a table contain. `option`: the option that wants them, for messages.

    Raises `UsageError` for a table that cannot be written, and `SetupUnusable` for a cluster that
    would not read them.
    """
    storage = cluster.storage(table.keyspace, table.table)
    _check_cluster(option, cluster, table.keyspace)
    _check_table(option, storage, table)
    for column, expression in (pair for source in sources for pair in source.filled):
        raise UsageError(
            f"{option}: only a node can compute {expression} for column {column!r}: "
            f"{by_cql(option)}"
        )
    return _layout(option, storage, table, sources, int(time.time()))


def in_version(
    version: SSTableVersion, layout: Layout, option: str, ttl_s: int, *, or_else: str = ""
) -> Layout:
    """Return a layout in this version. Raises `UsageError` for a TTL that it cannot store.

    `ttl_s`: the job's TTL; 0: the table's. `or_else`: what helps besides a shorter TTL.
    """
    life_s = ttl_s or layout.default_ttl_s
    if layout.written_s + life_s > version.expiry_s_max:
        raise UsageError(
            f"{option}: a TTL of {life_s} s ends after {version.last_day}, the last day that "
            f"SSTables of version {version} store: give a shorter --ttl{or_else}"
        )
    return replace(layout, version=version)


def by_cql(option: str) -> str:
    """Return what to do instead of writing SSTables."""
    return f"load it over CQL, without {option}"


def _layout(
    option: str,
    storage: TableStorage,
    table: TableSchema,
    sources: Sequence[LoadSource],
    written_s: int,
) -> Layout:
    loaded = {column for source in sources for column in source.columns}
    key_types = [table.parsed_type(name) for name in table.partition_key]
    keys = [class_name(kind, table.keyspace) for kind in key_types]
    return Layout(
        partition_key_class=keys[0] if len(keys) == 1 else composite_class(keys),
        clustering=tuple(
            _clustering_column(option, table, name, descends=name in storage.descending)
            for name in table.clustering_key
        ),
        columns=tuple(
            sorted(
                (
                    _column(option, table, column)
                    for column in table.columns
                    if column.name in loaded and column.name not in table.primary_key
                ),
                key=lambda column: (bool(column.cells), column.name.encode()),
            )
        ),
        written_s=written_s,
        default_ttl_s=storage.default_ttl_s,
        bloom_fp_chance=storage.bloom_fp_chance,
        index_interval=storage.index_interval,
        chunk_bytes=storage.chunk_bytes,
        keys=_key_columns(table) if any(map(has_order, key_types)) else (),
    )


def _key_columns(table: TableSchema) -> tuple[Column, ...]:
    return tuple(
        Column(
            name=name,
            class_name=class_name(kind, table.keyspace),
            cql_type=kind.name,
            width=fixed_width(kind),
            ordered=_ordered(kind),
        )
        for name, kind in ((name, table.parsed_type(name)) for name in table.partition_key)
    )


def _ordered(kind: CqlType) -> str:
    """Return the type of frozen values that hold sets or maps; empty for others."""
    return structure(kind) if has_order(kind) else ""


def _clustering_column(option: str, table: TableSchema, name: str, *, descends: bool) -> Column:
    kind = table.parsed_type(name)
    if not is_comparable(kind):  # such as a type that a later version has
        raise UsageError(
            f"{option} cannot sort rows by {name!r} of {table.name} yet, a clustering column "
            f"of type {table.type_of(name)}: {by_cql(option)}"
        )
    return Column(
        name=name,
        class_name=class_name(kind, table.keyspace),
        cql_type=structure(kind),
        width=fixed_width(kind),
        descends=descends,
        # A node takes values of a reversed type as they come (`AbstractMarker.Raw`).
        ordered="" if descends else _ordered(kind),
    )


def _is_path(kind: CqlType) -> bool:
    """Return whether elements of a set or keys of a map of this type can be sorted, and two that
    compare as equal have the same bytes."""
    return is_comparable(kind) and "decimal" not in structure(kind)


def _column(option: str, table: TableSchema, column: ColumnSchema) -> Column:
    kind = table.parsed_type(column.name)
    what = ""
    if is_multi_cell(column.cql_type, kind):
        if kind.name in ("list", "udt") or (kind.name in ("set", "map") and _is_path(kind.of[0])):
            return Column(
                name=column.name,
                class_name=multi_cell_class(kind, table.keyspace),
                cql_type=kind.name,
                width=0,
                cells=kind.name,
                static=column.static,
                path_type="" if kind.name in ("list", "udt") else structure(kind.of[0]),
                ordered=_ordered(kind) if any(map(has_order, kind.of)) else "",
            )
        what = f"a {column.cql_type} that is not frozen"
    if what:
        raise UsageError(
            f"{option} cannot write {column.name!r} of {table.name} yet, {what}: {by_cql(option)}, "
            f"or leave it out (--skip-columns)"
        )
    return Column(
        name=column.name,
        class_name=class_name(kind, table.keyspace),
        cql_type=kind.name,
        width=fixed_width(kind),
        static=column.static,
        ordered=_ordered(kind),
    )


def _check_table(option: str, storage: TableStorage, table: TableSchema) -> None:
    """Raise `UsageError` for a table whose nodes do more with a write than to store it."""
    reasons = {
        "it has materialized views, which a node fills from writes": storage.has_views,
        "it has change data capture (cdc), which logs writes": storage.has_cdc,
        "it has triggers, which run with writes": storage.has_triggers,
        "it has counters, which are only ever added to": any(
            column.cql_type == "counter" for column in table.columns
        ),
        "it is a virtual table": storage.is_virtual,
        "it has COMPACT STORAGE": storage.is_compact,
    }
    for reason, applies in reasons.items():
        if applies:
            raise UsageError(f"{option} cannot fill {table.name}: {reason}; {by_cql(option)}")


def _check_cluster(option: str, cluster: ClusterView, keyspace: str) -> None:
    """Raise `SetupUnusable` for nodes that would not read the files."""
    if cluster.partitioner != _PARTITIONER:
        raise SetupUnusable(
            f"{option}: this cluster has {cluster.partitioner}; only Murmur3Partitioner is "
            "supported"
        )
    for node in cluster.nodes:
        major = node.release.partition(".")[0]
        if node.dse_release or not major.isdigit() or int(major) not in _VERSIONS:
            found = f"DSE {node.dse_release}" if node.dse_release else node.release or "unknown"
            raise SetupUnusable(
                f"{option}: {node.address} runs version {found}; SSTables of version nb are "
                "for Apache Cassandra 4.0, 4.1 and 5.0"
            )
    if find_keyspace(cluster, keyspace).has_transient_replicas:
        raise SetupUnusable(
            f"{option}: keyspace {keyspace!r} has transient replicas, which need writes over CQL"
        )
