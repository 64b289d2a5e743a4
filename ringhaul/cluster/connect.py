"""Open and close driver sessions, in the same way in the producer and in every worker child.

The driver is the control plane: discovery, schema, authentication, TLS, prepared statements.
Settings that matter here, each with its reason:

- libev is forced, by way of `PromptConnection`. The asyncio reactor remembers the pid it was
  imported under and hangs in a forked child; libev resets itself.
- `prepare_on_all_hosts` and `reprepare_on_up` are off: with them a fleet of children sends
  children x statements x nodes PREPAREs; a node that lacks a statement answers UNPREPARED and
  gets it then.
- Reconnection never gives up; the driver's default stops after 64 attempts.
- The driver's retry policies are off: the write strategies own retries, with a budget and jitter.
"""

from __future__ import annotations

import itertools
import ssl
import threading
import time
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cassandra import ConsistencyLevel, ProtocolVersion, UnresolvableContactPoints
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import (
    EXEC_PROFILE_DEFAULT,
    Cluster,
    ExecutionProfile,
    NoHostAvailable,
    Session,
)
from cassandra.connection import EndPointFactory
from cassandra.policies import (
    DCAwareRoundRobinPolicy,
    ExponentialReconnectionPolicy,
    FallthroughRetryPolicy,
    LoadBalancingPolicy,
    TokenAwarePolicy,
)

from ringhaul.backoff import pause_s, spread
from ringhaul.cluster.bundle import Bundle, bundle_context
from ringhaul.cluster.connection import PromptConnection
from ringhaul.cluster.errors import ConnectionsExhausted, NodesTroubled, translate_error
from ringhaul.cluster.lz4_codec import offer_lz4
from ringhaul.cluster.metadata_service import ask_service
from ringhaul.cluster.node_filter import NodeFilter
from ringhaul.errors import ClusterError, UsageError
from ringhaul.option_names import job_option

#: Seconds between a topology or schema event and the refresh it causes; with the driver's 2 s every
#: child of a large fleet queries the same node at the same moment.
EVENT_REFRESH_WINDOW_S = 30
#: How long opening is retried while the node accepts no further connection, and its pauses.
EXHAUSTED_WAIT_S = 10.0
_PAUSE_FIRST_S = 0.25
_PAUSE_MAX_S = 2.0
#: Cassandra's message for a version that it supports but is configured to refuse.
_REFUSED_AS_OLD = "Rejecting Protocol Version"


@dataclass(frozen=True, kw_only=True)
class ClusterConfig:
    """Address and login of the cluster. Holds a secret: never log it."""

    contact_points: tuple[str, ...]  #: without effect if there is a bundle
    port: int = 9042
    #: The bundle that leads to the cluster, instead of contact points, port and TLS files.
    bundle: Bundle | None = None
    local_dc: str = ""  #: empty: the first contact point's data centre
    host_ids: tuple[str, ...] = ()  #: refuse a cluster with none of these nodes; empty: any
    #: Addresses and networks: of the nodes to use (empty: all), and of the nodes to leave alone.
    allowed_nodes: tuple[str, ...] = ()
    denied_nodes: tuple[str, ...] = ()
    user: str = ""
    password: str = ""
    tls: bool = False
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    tls_verify_hostname: bool = True
    compression: str = "none"  #: compression of requests and answers: none or lz4
    consistency: str = "LOCAL_QUORUM"
    connect_timeout_s: float = 10.0
    request_timeout_s: float = 12.0

    def __repr__(self) -> str:
        return f"ClusterConfig({self.where})"

    @property
    def where(self) -> str:
        """The contact points as a person would write them, or the service that knows them."""
        if self.bundle is not None:
            return self.bundle.where
        return ", ".join(f"{host}:{self.port}" for host in self.contact_points)


def consistency_level(name: str) -> int:
    """Return the protocol's number of a consistency level. Raises `UsageError` if unknown."""
    try:
        level: int = ConsistencyLevel.name_to_value[name.upper()]
    except KeyError:
        known = ", ".join(ConsistencyLevel.name_to_value)
        raise UsageError(f"no consistency level {name!r}; one of {known}") from None
    return level


def open_session(config: ClusterConfig) -> Session:
    """Return a connected session of the calling process (never call it before a fork).

    Nodes that accept no further connection, or answer with an error that may pass, are retried for
    `EXHAUSTED_WAIT_S`: the connections of commands come and go. Raises `ClusterError` (credentials,
    data centre or TLS files are wrong) or `ClusterUnavailable` (no node answers, or none without an
    error), with messages for users.
    """
    give_up_at = time.monotonic() + EXHAUSTED_WAIT_S
    for tries in itertools.count(1):
        try:
            return _open_newest(config)
        except (ConnectionsExhausted, NodesTroubled):
            wait_s = spread(pause_s(tries, first_s=_PAUSE_FIRST_S, max_s=_PAUSE_MAX_S))
            if time.monotonic() + wait_s > give_up_at:
                raise
        time.sleep(wait_s)
    raise AssertionError("the loop ends by a return or an error")


def _open_newest(config: ClusterConfig) -> Session:
    try:
        return _open(config, ProtocolVersion.V4)
    except _NewerWanted:
        return _open(config, ProtocolVersion.V5)


class _NewerWanted(Exception):
    """The node is configured to refuse the version (native_transport_allow_older_protocols)."""


def _open(config: ClusterConfig, version: int) -> Session:
    """Return a session that uses this or an older version of the native protocol."""
    place = _place(config)
    # Without a name, the first contact point's data centre is local: a coordinator elsewhere would
    # make LOCAL_QUORUM a quorum of the wrong data centre.
    local: LoadBalancingPolicy = DCAwareRoundRobinPolicy(local_dc=place.local_dc)
    nodes = NodeFilter(config.allowed_nodes, config.denied_nodes)
    if nodes:
        local = nodes.applied_to(local)
    profile = ExecutionProfile(
        # Shuffled, so that a retried statement does not meet the same silent replica.
        load_balancing_policy=TokenAwarePolicy(local, shuffle_replicas=True),
        retry_policy=FallthroughRetryPolicy(),
        consistency_level=consistency_level(config.consistency),
        request_timeout=config.request_timeout_s,
    )
    try:
        cluster = Cluster(
            contact_points=place.contact_points,
            port=config.port,
            endpoint_factory=place.endpoints,
            connection_class=PromptConnection,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            auth_provider=_auth(config),
            ssl_context=place.tls,
            compression=False if config.compression == "none" else config.compression,
            connect_timeout=config.connect_timeout_s,
            control_connection_timeout=config.connect_timeout_s,
            reconnection_policy=ExponentialReconnectionPolicy(1.0, 30.0, max_attempts=None),
            prepare_on_all_hosts=False,
            reprepare_on_up=False,
            monitor_reporting_enabled=False,
            schema_event_refresh_window=EVENT_REFRESH_WINDOW_S,
            topology_event_refresh_window=EVENT_REFRESH_WINDOW_S,
            status_event_refresh_window=2,
        )
    except UnresolvableContactPoints as error:
        raise translate_error(error, where=config.where) from error
    # The driver would start with two versions that only DataStax Enterprise supports. From a
    # version set here it steps down as from its own; it would insist on a version given to the
    # constructor. Version 5 costs a tenth more CPU per page for segments of 128 KiB and their
    # checksums, so it is only used for nodes that support nothing else.
    cluster.protocol_version = version
    try:
        session = _connect(cluster, place.local_dc, nodes)
        _check_host_ids(cluster, config.host_ids)
    except Exception as error:
        cluster.shutdown()
        if version < ProtocolVersion.V5 and _REFUSED_AS_OLD in str(error):
            raise _NewerWanted from error
        raise translate_error(
            error,
            where=place.where,
            user=_login(config)[0],
            tls_cert=config.tls_cert if config.tls or config.bundle else None,
            bundle=config.bundle.path if config.bundle else "",
        ) from error
    return session


class _Place(NamedTuple):
    """How to reach the cluster, in the driver's terms."""

    contact_points: list[Any]  #: names and addresses, or endpoints
    local_dc: str
    tls: ssl.SSLContext | None
    where: str  #: the cluster's place, in messages
    endpoints: EndPointFactory | None = None  #: None: nodes are reached by their addresses


def _place(config: ClusterConfig) -> _Place:
    if config.compression == "lz4":
        offer_lz4()
    if config.bundle is None:
        tls = _ssl_context(config)
        return _Place(list(config.contact_points), config.local_dc, tls, config.where)
    tls = bundle_context(config.bundle)
    managed = ask_service(config.bundle, tls, config.connect_timeout_s)
    endpoints = managed.endpoints()
    contact_points = [endpoints.create_from_sni(host_id) for host_id in managed.host_ids]
    local_dc = config.local_dc or managed.local_dc
    return _Place(contact_points, local_dc, tls, managed.where, endpoints)


def close_session(session: Session, timeout_s: float = 5.0) -> bool:
    """Close the session and its cluster; return whether that finished within `timeout_s`.

    `Cluster.shutdown` waits for the driver's own executor, which can hang on a dead node; a pool
    child has about a second between its shutdown signal and `os._exit`, so a daemon thread bounds
    the wait.
    """
    closer = threading.Thread(target=session.cluster.shutdown, daemon=True)
    closer.start()
    closer.join(timeout_s)
    return not closer.is_alive()


def renew_pools(session: Session) -> Collection[Future[bool]]:
    """Reopen a session's broken connections that the driver does not reopen.

    If a cluster has several sessions, the driver drops a session's pool when its connection breaks
    and makes another when the host comes up again; but a host to which another session is connected
    never went down. Returns the connections being opened, usually none.
    """
    renewals: Collection[Future[bool]] = session.update_created_pools()
    return renewals


class Reconnecting:
    """Reopens a session's broken connections after errors, see `renew_pools`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._renewals: Collection[Future[bool]] = ()

    def begin(self) -> None:
        """Start reopening after an error, without waiting, unless attempts are still running."""
        if all(renewal.done() for renewal in self._renewals):
            self._renewals = renew_pools(self._session)


def _auth(config: ClusterConfig) -> PlainTextAuthProvider | None:
    user, password = _login(config)
    return PlainTextAuthProvider(username=user, password=password) if user else None


def _login(config: ClusterConfig) -> tuple[str, str]:
    """Return user and password from the settings, or else from the bundle."""
    if config.user or config.bundle is None:
        return config.user, config.password
    return config.bundle.user, config.bundle.password


def _ssl_context(config: ClusterConfig) -> ssl.SSLContext | None:
    if not config.tls:
        return None
    return tls_context(
        "cluster",
        ca=config.tls_ca,
        cert=config.tls_cert,
        key=config.tls_key,
        verify_hostname=config.tls_verify_hostname,
    )


def tls_context(
    section: str, *, ca: str, cert: str, key: str, verify_hostname: bool
) -> ssl.SSLContext:
    """Return a client's TLS context. Empty paths: the system's authorities, no certificate.

    `section`: section of the settings. Raises `UsageError`, which names the wrong setting.
    """
    for option, path in (
        (f"{section}.tls_ca", ca),
        (f"{section}.tls_cert", cert),
        (f"{section}.tls_key", key),
    ):
        if path and not Path(path).is_file():
            raise UsageError(f"{option}: no such file {path}")
    try:
        context = ssl.create_default_context(cafile=ca or None)
    except OSError as error:
        raise UsageError(f"{section}.tls_ca: {ca} cannot be used: {error}") from error
    context.check_hostname = verify_hostname

    def refuse_password() -> str:
        # OpenSSL would ask for it at the terminal, which workers do not have.
        raise UsageError(
            f"{section}.tls_key: {key or cert} is protected by a password: use a key without one, "
            "in a file that only its user can read (`openssl pkey -in KEY -out NEW`)"
        )

    if cert:
        try:
            context.load_cert_chain(cert, key or None, password=refuse_password)
        except OSError as error:
            raise UsageError(
                f"{section}.tls_cert {cert} with {section}.tls_key {key} cannot be used: {error}"
            ) from error
    return context


def _connect(cluster: Cluster, local_dc: str, nodes: NodeFilter) -> Session:
    """Return the session. With a mistyped data centre, or lists that leave out every node, the
    driver finds the nodes but uses none."""
    try:
        session = cluster.connect()
    except NoHostAvailable:
        _check_local_dc(cluster, local_dc)
        nodes.check(cluster.metadata.all_hosts())
        raise
    _check_local_dc(cluster, local_dc)
    nodes.check(cluster.metadata.all_hosts())
    return session


def _check_host_ids(cluster: Cluster, wanted: tuple[str, ...]) -> None:
    """Raise `ClusterError` if the cluster has none of the nodes in `host_ids`."""
    there = {str(host.host_id) for host in cluster.metadata.all_hosts()}
    if wanted and not there.intersection(wanted):
        raise ClusterError(
            f"this is a different cluster: it has the host ids {', '.join(sorted(there))}, and "
            f"cluster.host_ids expects {', '.join(wanted)}. Another server may have the address "
            "now; `ringhaul local up` starts a local stack again."
        )


def _check_local_dc(cluster: Cluster, local_dc: str) -> None:
    """Raise `ClusterError` if nodes were found but none in `local_dc`; name their data centres."""
    known = sorted({host.datacenter for host in cluster.metadata.all_hosts() if host.datacenter})
    if local_dc and known and local_dc not in known:
        raise ClusterError(
            f"no data centre {local_dc!r} in this cluster; it has {', '.join(known)} "
            f"({job_option('local-dc')}, cluster.local_dc)"
        )
