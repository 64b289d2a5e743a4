"""A cluster as the driver sees it through a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ResponseFuture, Session
from cassandra.metadata import KeyspaceMetadata, LocalStrategy, Murmur3Token, TableMetadata
from cassandra.policies import HostDistance
from cassandra.query import SimpleStatement

from ringhaul.cluster.datacentres import local_dc_of
from ringhaul.cluster.markers import described
from ringhaul.cluster.permission import check_may_write
from ringhaul.cluster.prepared import Prepared
from ringhaul.cluster.replication import Replication, replication_of
from ringhaul.cluster.schema import ColumnSchema, TableSchema, quote_identifier
from ringhaul.cluster.view import (
    ClusterNode,
    KeyspaceSchema,
    RingToken,
    SizeEstimate,
    TableStorage,
)
from ringhaul.cql.types import Fields
from ringhaul.streaming.owners import Owners
from ringhaul.streaming.ring import read_owners, read_table_id

#: Estimates only make units even, so a slow node's estimates are skipped.
ESTIMATES_TIMEOUT_S = 5.0
_ESTIMATES = SimpleStatement(
    "SELECT range_start, range_end, partitions_count, mean_partition_size "
    "FROM system.size_estimates WHERE keyspace_name = %s AND table_name = %s"
)


class DriverView:
    """The `ClusterView` of a session: what its driver knows now, and what its servers answer."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._cluster = session.cluster

    @property
    def name(self) -> str:
        return str(self._cluster.metadata.cluster_name)

    @property
    def user(self) -> str:
        return str(getattr(self._cluster.auth_provider, "username", ""))

    @property
    def partitioner(self) -> str:
        return str(self._cluster.metadata.partitioner)

    @property
    def is_murmur3(self) -> bool:
        token_map = self._cluster.metadata.token_map
        return token_map is not None and token_map.token_class is Murmur3Token

    @property
    def local_dc(self) -> str | None:
        return local_dc_of(self._session)

    @property
    def level(self) -> str:
        profile = self._session.get_execution_profile(EXEC_PROFILE_DEFAULT)
        return str(ConsistencyLevel.value_to_name[profile.consistency_level])

    @property
    def nodes(self) -> Sequence[ClusterNode]:
        return [_node(host) for host in self._cluster.metadata.all_hosts()]

    @property
    def keyspace_names(self) -> Sequence[str]:
        return list(self._cluster.metadata.keyspaces)

    def keyspace(self, name: str) -> KeyspaceSchema | None:
        found = self._cluster.metadata.keyspaces.get(name)
        if found is None:
            return None
        strategy = found.replication_strategy
        return KeyspaceSchema(
            name=name,
            tables=tuple(found.tables),
            views={view: str(known.base_table_name) for view, known in found.views.items()},
            user_types=_user_types(found),
            is_virtual=bool(found.virtual),
            is_local=isinstance(strategy, LocalStrategy),
            has_transient_replicas=strategy is not None and "/" in strategy.export_for_schema(),
        )

    def table(self, keyspace: str, name: str) -> TableSchema | None:
        known = self._cluster.metadata.keyspaces[keyspace]
        found = known.views.get(name) or known.tables.get(name)
        if found is None:
            return None
        return TableSchema(
            keyspace=keyspace,
            table=name,
            columns=tuple(
                ColumnSchema(name=column.name, cql_type=column.cql_type, static=column.is_static)
                for column in found.columns.values()
            ),
            partition_key=tuple(column.name for column in found.partition_key),
            clustering_key=tuple(column.name for column in found.clustering_key),
            user_types=_user_types(known),
        )

    def storage(self, keyspace: str, table: str) -> TableStorage:
        return _storage(self._cluster.metadata.keyspaces[keyspace].tables[table])

    def replication(self, keyspace: str) -> Replication | None:
        return replication_of(self._session, keyspace)

    def ring(self, keyspace: str) -> Sequence[RingToken]:
        metadata = self._cluster.metadata
        if keyspace not in metadata.keyspaces:
            self._cluster.refresh_keyspace_metadata(keyspace)
        token_map = metadata.token_map
        return [
            RingToken(
                token.value,
                str(token_map.token_to_host_owner[token].host_id),
                tuple(
                    sorted(str(host.host_id) for host in token_map.get_replicas(keyspace, token))
                ),
            )
            for token in token_map.ring
        ]

    def estimates(self, keyspace: str, table: str) -> Sequence[SizeEstimate]:
        policy = self._session.get_execution_profile(EXEC_PROFILE_DEFAULT).load_balancing_policy
        futures: list[ResponseFuture] = [
            self._session.execute_async(
                _ESTIMATES, (keyspace, table), timeout=ESTIMATES_TIMEOUT_S, host=host
            )
            for host in self._cluster.metadata.all_hosts()
            if host.is_up is not False and policy.distance(host) != HostDistance.IGNORED
        ]
        found = []
        for future in futures:
            try:
                rows = list(future.result())
            except Exception:  # whatever it is, the plan works without it
                continue
            found += [
                SizeEstimate(int(start), int(end), count, mean) for start, end, count, mean in rows
            ]
        return found

    def tokens(self, table: TableSchema, keys: Sequence[tuple[object, ...]]) -> Sequence[int]:
        names = [quote_identifier(name) for name in table.partition_key]
        where = f"{quote_identifier(table.keyspace)}.{quote_identifier(table.table)}"
        prepared = self._session.prepare(
            f"SELECT {names[0]} FROM {where} WHERE {' AND '.join(f'{name} = ?' for name in names)}"
        )
        return [Murmur3Token.from_key(prepared.bind(key).routing_key).value for key in keys]

    def prepare(self, text: str) -> Prepared:
        return described(self._session.prepare(text))

    def has_row(self, text: str) -> bool:
        return self._session.execute(text).one() is not None

    def setting(self, name: str) -> str | None:
        query = "SELECT value FROM system_views.settings WHERE name = %s"
        row = self._session.execute(query, (name,)).one()
        return None if row is None else str(row.value or "")

    def schema_versions(self) -> set[str]:
        down = {node.address for node in self.nodes if node.is_down}
        local = self._at_one("SELECT schema_version FROM system.local")
        peers = self._at_one("SELECT peer, rpc_address, schema_version FROM system.peers")
        alive = [one for one in peers if not down & {str(one.peer), str(one.rpc_address)}]
        return {str(one.schema_version) for one in [*local, *alive] if one.schema_version}

    def table_id(self, keyspace: str, table: str) -> str:
        return read_table_id(self._session, keyspace, table)

    def owners(self, keyspace: str, storage_port: int) -> Owners:
        return read_owners(self._session, keyspace, storage_port)

    def check_may_write(self, table: TableSchema) -> None:
        check_may_write(self._session, table)

    def _at_one(self, text: str) -> list[Any]:
        statement = SimpleStatement(text, consistency_level=ConsistencyLevel.ONE)
        return list(self._session.execute(statement))


def _user_types(keyspace: KeyspaceMetadata) -> tuple[tuple[str, Fields], ...]:
    return tuple(
        (name, tuple(zip(found.field_names, found.field_types, strict=True)))
        for name, found in keyspace.user_types.items()
    )


def _node(host: Any) -> ClusterNode:
    return ClusterNode(
        address=str(host.address),
        host_id=str(host.host_id or ""),
        data_centre=str(host.datacenter or ""),
        release=str(host.release_version or ""),
        dse_release=str(host.dse_version or ""),
        internal_address=str(host.broadcast_address or ""),
        is_down=host.is_up is False,
    )


def _storage(table: TableMetadata) -> TableStorage:
    options = table.options
    compression: dict[str, str] = options.get("compression") or {}
    compressed = compression.get("enabled", "true") != "false" and bool(compression.get("class"))
    return TableStorage(
        default_ttl_s=int(options.get("default_time_to_live") or 0),
        bloom_fp_chance=float(options.get("bloom_filter_fp_chance") or 0.01),
        index_interval=int(options.get("min_index_interval") or 128),
        chunk_bytes=int(compression.get("chunk_length_in_kb", 16)) * 1024 if compressed else 0,
        descending=frozenset(
            column.name for column in table.columns.values() if column.is_reversed
        ),
        custom_indexes=tuple(
            (index.name, str(index.index_options.get("class_name", "custom")).rpartition(".")[2])
            for index in table.indexes.values()
            if index.kind == "CUSTOM"
        ),
        has_views=bool(table.views),
        has_cdc=str(options.get("cdc") or "").lower() == "true",
        has_triggers=bool(table.triggers),
        is_virtual=bool(table.virtual),
        is_compact=bool(table.is_compact_storage),
    )
