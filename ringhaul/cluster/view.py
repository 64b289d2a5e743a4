"""What planning asks a cluster: its schema, its nodes, and a few questions to its servers.

Plans are made with a `ClusterView` and never with a driver session, so that they can be tested
without a server. `driver_view.py` answers from a session; tests answer from a file. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from ringhaul.cluster.prepared import Prepared
    from ringhaul.cluster.replication import Replication
    from ringhaul.cluster.schema import TableSchema
    from ringhaul.cql.types import Fields
    from ringhaul.streaming.owners import Owners


class RingToken(NamedTuple):
    """A token of the ring; its host owns the range that ends there."""

    token: int
    owner: str  #: id of the host
    replicas: tuple[str, ...]  #: ids of all hosts that replicate the range, sorted


class SizeEstimate(NamedTuple):
    """A node's estimate of the range of one of its tokens; a row of system.size_estimates."""

    lo: int
    hi: int  #: not above `lo` if the range wraps around the end of the ring
    partitions: int
    partition_bytes: int  #: mean

    @property
    def bytes(self) -> int:
        return self.partitions * self.partition_bytes


@dataclass(frozen=True, kw_only=True)
class ClusterNode:
    """A node of the cluster, up or down. Texts that the cluster does not report are empty."""

    address: str  #: where clients reach it
    host_id: str = ""
    data_centre: str = ""
    release: str = ""  #: such as `5.0.2`
    dse_release: str = ""  #: version of DataStax Enterprise
    internal_address: str = ""  #: where other nodes reach it
    is_down: bool = False  #: False also if it is not known


@dataclass(frozen=True, kw_only=True)
class KeyspaceSchema:
    """A keyspace: the names in it, and how its rows are kept."""

    name: str
    tables: tuple[str, ...] = ()
    views: Mapping[str, str] = field(default_factory=dict)  #: materialized view -> its table
    #: User-defined types: (name, its fields as (name, CQL type)).
    user_types: tuple[tuple[str, Fields], ...] = ()
    is_virtual: bool = False  #: its tables show the state of one node
    is_local: bool = False  #: each node has its own rows (LocalStrategy)
    has_transient_replicas: bool = False


@dataclass(frozen=True, kw_only=True)
class TableStorage:
    """How nodes store a table, and what they do with its rows besides."""

    default_ttl_s: int = 0  #: seconds; 0: rows stay
    bloom_fp_chance: float = 0.01
    index_interval: int = 128  #: the least, in partitions
    chunk_bytes: int = 0  #: length of a compressed chunk; 0: not compressed
    descending: frozenset[str] = frozenset()  #: clustering columns in descending order
    custom_indexes: tuple[tuple[str, str], ...] = ()  #: name and class, without its package
    has_views: bool = False
    has_cdc: bool = False
    has_triggers: bool = False
    is_virtual: bool = False
    is_compact: bool = False  #: COMPACT STORAGE


class ClusterView(Protocol):
    """A cluster as planning sees it.

    Questions about schema and nodes are answered from memory. Questions with a `Raises` go to
    servers, and raise the driver's errors.
    """

    @property
    def name(self) -> str:
        """The cluster's name."""

    @property
    def user(self) -> str:
        """The user that is logged in; empty without log-in."""

    @property
    def partitioner(self) -> str:
        """The class of the partitioner, with its package."""

    @property
    def is_murmur3(self) -> bool:
        """Whether the ring is known, and its tokens are from Murmur3Partitioner."""

    @property
    def local_dc(self) -> str | None:
        """The data centre whose nodes are used; None if no node reports it."""

    @property
    def level(self) -> str:
        """The consistency level of requests, such as `LOCAL_QUORUM`."""

    @property
    def nodes(self) -> Sequence[ClusterNode]:
        """All nodes, up or down, of all data centres."""

    @property
    def keyspace_names(self) -> Collection[str]:
        """The names of all keyspaces."""

    def keyspace(self, name: str) -> KeyspaceSchema | None:
        """Return a keyspace; None if there is none of this name."""

    def table(self, keyspace: str, name: str) -> TableSchema | None:
        """Return a table or a materialized view of an existing keyspace; None if it has none of
        this name."""

    def storage(self, keyspace: str, table: str) -> TableStorage:
        """Return how an existing table is stored."""

    def replication(self, keyspace: str) -> Replication | None:
        """Return the replication of a keyspace; None if it is not there or cannot be judged."""

    def ring(self, keyspace: str) -> Sequence[RingToken]:
        """Return the ring for a keyspace, in token order. Only with `is_murmur3`.

        Raises the driver's errors if it has to ask for the keyspace.
        """

    def estimates(self, keyspace: str, table: str) -> Sequence[SizeEstimate]:
        """Return the nodes' size estimates of their ranges of a table; silent nodes are skipped.

        Each node knows only its own ranges, counts only what is on its disk, and updates the
        numbers every five minutes: a table that was just written has no estimates, or zeros, or
        old ones.
        """

    def tokens(self, table: TableSchema, keys: Sequence[tuple[object, ...]]) -> Sequence[int]:
        """Return the token of each partition key. Only with `is_murmur3`.

        Raises the driver's errors.
        """

    def prepare(self, text: str) -> Prepared:
        """Prepare a statement. Raises the driver's errors."""

    def has_row(self, text: str) -> bool:
        """Run a SELECT without markers; return whether its result has a row.

        Raises the driver's errors.
        """

    def setting(self, name: str) -> str | None:
        """Return a setting of a node; None if it has none of this name. Raises the driver's
        errors."""

    def schema_versions(self) -> Collection[str]:
        """Return the versions of the schema that nodes have which are not known to be down.

        Raises the driver's errors.
        """

    def table_id(self, keyspace: str, table: str) -> str:
        """Return the id of a table; empty if there is none. Raises `ClusterUnavailable`."""

    def owners(self, keyspace: str, storage_port: int) -> Owners:
        """Return the owners of a keyspace's tokens, read now.

        `storage_port`: the port of all nodes; 0: what each reports. Raises `RingChanging`
        and `ClusterUnavailable`.
        """

    def check_may_write(self, table: TableSchema) -> None:
        """Raise `Unauthorized` or another error of the driver if a write to the table would."""
