"""Read which nodes own which tokens, as the cluster sees it now."""

from __future__ import annotations

import ast

from cassandra import DriverException, InvalidRequest
from cassandra.cluster import NoHostAvailable, Session

from ringhaul.errors import ClusterError, ClusterUnavailable, Transient
from ringhaul.streaming.owners import Node, Owners

#: States in gossip of nodes whose tokens change owners (`VersionedValue`). Such tokens have further
#: replicas that no query shows, so rows that are streamed then could be missing on them.
_CHANGING = ("BOOT", "BOOT_REPLACE", "LEAVING", "MOVING", "removing")
_STATES = "SELECT address, status_with_port FROM system_views.gossip_info"
_TABLE = "SELECT id FROM system_schema.tables WHERE keyspace_name = %s AND table_name = %s"
_REPLICATION = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s"


class RingChanging(Transient):
    """Nodes join, leave or move: it is not settled who owns which rows."""


def read_owners(session: Session, keyspace: str, storage_port: int = 0) -> Owners:
    """Return the owners of a keyspace's tokens.

    `storage_port`: storage port of all nodes; 0: the port that each node reports. Raises
    `RingChanging` and `ClusterUnavailable`.
    """
    cluster = session.cluster
    try:
        _refuse_changes(session)
        cluster.refresh_nodes(force_token_rebuild=True)  # tokens may have moved
    except (DriverException, NoHostAvailable) as error:
        raise ClusterUnavailable(f"cannot read who owns which rows: {error}") from error
    refresh_replication(session, keyspace)
    token_map = cluster.metadata.token_map
    if token_map is None or not token_map.ring or keyspace not in cluster.metadata.keyspaces:
        raise RingChanging("the cluster does not say yet who owns which rows")
    known: dict[tuple[Node, ...], int] = {}
    set_of = []
    for token in token_map.ring:
        nodes = tuple(
            sorted(_node(host, storage_port) for host in token_map.get_replicas(keyspace, token))
        )
        if not nodes:
            raise RingChanging(f"no node owns the rows of keyspace {keyspace}")
        set_of.append(known.setdefault(nodes, len(known)))
    return Owners(
        tokens=tuple(token.value for token in token_map.ring),
        sets=tuple(known),
        set_of=tuple(set_of),
    )


def check_table(session: Session, keyspace: str, table: str, table_id: str) -> None:
    """Raise `ClusterError` unless the table still has this id."""
    if read_table_id(session, keyspace, table) != table_id:
        raise ClusterError(
            f"{keyspace}.{table} was dropped, or created again, since the job was planned: start "
            "another load"
        )


def read_table_id(session: Session, keyspace: str, table: str) -> str:
    """Return the id of a table; empty if there is none. Raises `ClusterUnavailable`."""
    try:
        row = session.execute(_TABLE, (keyspace, table)).one()
    except (DriverException, NoHostAvailable) as error:
        raise ClusterUnavailable(f"cannot read the schema: {error}") from error
    return "" if row is None else str(row.id)


def _node(host: object, storage_port: int) -> Node:
    address = getattr(host, "broadcast_address", None)
    port = storage_port or getattr(host, "broadcast_port", None)
    if not address or not port:
        raise RingChanging(f"{host} does not report its address for other nodes yet")
    return Node(address=address, port=port, data_centre=getattr(host, "datacenter", None) or "")


def _refuse_changes(session: Session) -> None:
    """Raise `RingChanging` if nodes join, leave or move. Version 4.0 does not show that."""
    try:
        states = session.execute(_STATES)
    except InvalidRequest:
        return
    for state in states:
        if (state.status_with_port or "").partition(",")[0] in _CHANGING:
            raise RingChanging(
                f"node {state.address} is {state.status_with_port.partition(',')[0]}: rows can be "
                "streamed when it has joined, left or moved"
            )


def refresh_replication(session: Session, keyspace: str) -> None:
    """Read the keyspace again if the driver does not know its current replication: the driver may
    be half a minute late, or not know a new keyspace at all. Raises `ClusterUnavailable`."""
    metadata = session.cluster.metadata
    try:
        row = session.execute(_REPLICATION, (keyspace,)).one()
        known = metadata.keyspaces.get(keyspace)
        if row is None or known is None or _shown(known) != dict(row.replication):
            session.cluster.refresh_keyspace_metadata(keyspace)
    except (DriverException, NoHostAvailable) as error:
        raise ClusterUnavailable(f"cannot read the replication of {keyspace}: {error}") from error


def _shown(keyspace: object) -> dict[str, str]:
    """Return the replication of a keyspace of the driver as the schema's table has it."""
    text = keyspace.replication_strategy.export_for_schema()  # type: ignore[attr-defined]
    options = ast.literal_eval(text)
    return {
        name: f"org.apache.cassandra.locator.{value}" if name == "class" else str(value)
        for name, value in options.items()
    }
