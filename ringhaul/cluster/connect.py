"""Open and close driver sessions, the same way in the producer and in every worker child.

The driver is the control plane: discovery, schema, authentication, TLS, prepared statements.
Settings that matter here, each with its reason:

- libev is forced, by way of `PromptConnection`. The asyncio reactor remembers the pid it was
  imported under and hangs in a forked child; libev resets itself.
- `prepare_on_all_hosts` and `reprepare_on_up` are off: with them a fleet of children sends
  children x statements x nodes PREPAREs; a node that lacks a statement says UNPREPARED and
  gets it then.
- Reconnection never gives up; the driver's default stops after 64 attempts.
- No retry policy of the driver's: the write strategies own retries, with a budget and jitter.
"""

from __future__ import annotations

import random
import ssl
import threading
import time
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from cassandra import ConsistencyLevel, ProtocolVersion, UnresolvableContactPoints
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import (
    EXEC_PROFILE_DEFAULT,
    Cluster,
    ExecutionProfile,
    NoHostAvailable,
    Session,
)
from cassandra.policies import (
    DCAwareRoundRobinPolicy,
    ExponentialReconnectionPolicy,
    FallthroughRetryPolicy,
    TokenAwarePolicy,
)

from ringhaul.cluster.connection import PromptConnection
from ringhaul.cluster.errors import ConnectionsExhausted, tell
from ringhaul.errors import ClusterError, UsageError

#: Seconds between a topology or schema event and the refresh it causes; the driver's 2 s make
#: every child of a large fleet ask the same node at the same moment.
EVENT_REFRESH_WINDOW_S = 30
#: How long an open is tried again while the node takes no further connection, and the pauses.
EXHAUSTED_WAIT_S = 10.0
EXHAUSTED_PAUSES_S = (0.25, 0.5, 1.0, 2.0, 2.0, 2.0, 2.0)
#: Cassandra's words for a version that it speaks and is told not to.
_REFUSED_AS_OLD = "Rejecting Protocol Version"


@dataclass(frozen=True, kw_only=True)
class ClusterConfig:
    """Where the cluster is and how to be let in. Holds a secret: never log it."""

    contact_points: tuple[str, ...]
    port: int = 9042
    local_dc: str = ""  #: empty: that of the first contact point
    host_ids: tuple[
        str, ...
    ] = ()  #: a cluster without any of these nodes is refused; empty: none is
    user: str = ""
    password: str = ""
    tls: bool = False
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    tls_verify_hostname: bool = True
    consistency: str = "LOCAL_QUORUM"
    connect_timeout_s: float = 10.0
    request_timeout_s: float = 12.0

    def __repr__(self) -> str:
        return f"ClusterConfig({','.join(self.contact_points)}:{self.port})"

    @property
    def where(self) -> str:
        """The contact points as a person would write them."""
        return ", ".join(f"{host}:{self.port}" for host in self.contact_points)


def consistency_level(name: str) -> int:
    """The protocol's number of a consistency level. Raises `UsageError` for an unknown name."""
    try:
        level: int = ConsistencyLevel.name_to_value[name.upper()]
    except KeyError:
        known = ", ".join(ConsistencyLevel.name_to_value)
        raise UsageError(f"no consistency level {name!r}; one of {known}") from None
    return level


def open_session(config: ClusterConfig) -> Session:
    """A connected session, in the process that calls it (never before a fork).

    A node that takes no further connection is tried again for `EXHAUSTED_WAIT_S`: connections of
    commands come and go. Raises `ClusterError` (credentials, data centre or TLS files are wrong)
    or `ClusterUnavailable` (nobody answers), both in the user's words.
    """
    give_up_at = time.monotonic() + EXHAUSTED_WAIT_S
    for pause_s in EXHAUSTED_PAUSES_S:
        try:
            return _open_newest(config)
        except ConnectionsExhausted:
            if time.monotonic() + pause_s > give_up_at:
                raise
        time.sleep(pause_s * random.uniform(0.5, 1.0))
    return _open_newest(config)


def _open_newest(config: ClusterConfig) -> Session:
    try:
        return _open(config, ProtocolVersion.V4)
    except _NewerWanted:
        return _open(config, ProtocolVersion.V5)


class _NewerWanted(Exception):
    """The node is set to refuse the version (native_transport_allow_older_protocols)."""


def _open(config: ClusterConfig, version: int) -> Session:
    """The session, by this version of the native protocol or an older one."""
    # Without a name the local data centre is that of the first contact point: a coordinator
    # elsewhere would make LOCAL_QUORUM a quorum of the wrong data centre.
    local = DCAwareRoundRobinPolicy(local_dc=config.local_dc)
    profile = ExecutionProfile(
        # Shuffled, so that a statement that is tried again does not meet the same silent replica.
        load_balancing_policy=TokenAwarePolicy(local, shuffle_replicas=True),
        retry_policy=FallthroughRetryPolicy(),
        consistency_level=consistency_level(config.consistency),
        request_timeout=config.request_timeout_s,
    )
    try:
        cluster = Cluster(
            contact_points=list(config.contact_points),
            port=config.port,
            connection_class=PromptConnection,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            auth_provider=_auth(config),
            ssl_context=_ssl_context(config),
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
        raise tell(error, where=config.where) from error
    # The driver would begin with two versions that only DataStax Enterprise speaks, and goes down
    # from the one that is given here as from its own; a version given above it would insist on.
    # Version 5 takes a tenth more CPU for a page, segments of 128 KiB and their checksums: it is
    # for nodes that speak nothing else.
    cluster.protocol_version = version
    try:
        session = _connect(cluster, config.local_dc)
        _check_host_ids(cluster, config.host_ids)
    except Exception as error:
        cluster.shutdown()
        if version < ProtocolVersion.V5 and _REFUSED_AS_OLD in str(error):
            raise _NewerWanted from error
        raise tell(
            error,
            where=config.where,
            user=config.user,
            tls_cert=config.tls_cert if config.tls else None,
        ) from error
    return session


def close_session(session: Session, timeout_s: float = 5.0) -> bool:
    """Close the session and its cluster; true when that ended within `timeout_s`.

    `Cluster.shutdown` waits for the driver's own executor, which can hang on a dead node; a
    pool child has about a second between its shutdown signal and `os._exit`, so the wait is
    bounded by a daemon thread.
    """
    closer = threading.Thread(target=session.cluster.shutdown, daemon=True)
    closer.start()
    closer.join(timeout_s)
    return not closer.is_alive()


def renew_pools(session: Session) -> Collection[Future[bool]]:
    """Open a session's connections again that broke and do not come back by themselves.

    Where a cluster has several sessions the driver gives a session's pool up when its connection
    breaks, and makes another when the host comes up again; but a host to which some other session
    is connected never went down. Returns what is being opened; mostly that is nothing.
    """
    renewals: Collection[Future[bool]] = session.update_created_pools()
    return renewals


class Reconnecting:
    """Has a session's broken connections opened again after errors, see `renew_pools`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._renewals: Collection[Future[bool]] = ()

    def begin(self) -> None:
        """After an error. Does not wait, and begins nothing while there are attempts under way."""
        if all(renewal.done() for renewal in self._renewals):
            self._renewals = renew_pools(self._session)


def _auth(config: ClusterConfig) -> PlainTextAuthProvider | None:
    if not config.user:
        return None
    return PlainTextAuthProvider(username=config.user, password=config.password)


def _ssl_context(config: ClusterConfig) -> ssl.SSLContext | None:
    if not config.tls:
        return None
    for option, path in (
        ("cluster.tls_ca", config.tls_ca),
        ("cluster.tls_cert", config.tls_cert),
        ("cluster.tls_key", config.tls_key),
    ):
        if path and not Path(path).is_file():
            raise UsageError(f"{option}: no such file {path}")
    try:
        context = ssl.create_default_context(cafile=config.tls_ca or None)
    except OSError as error:
        raise UsageError(f"cluster.tls_ca: {config.tls_ca} cannot be used: {error}") from error
    context.check_hostname = config.tls_verify_hostname
    if config.tls_cert:
        try:
            context.load_cert_chain(config.tls_cert, config.tls_key or None)
        except OSError as error:
            raise UsageError(
                f"cluster.tls_cert {config.tls_cert} with cluster.tls_key {config.tls_key} "
                f"cannot be used: {error}"
            ) from error
    return context


def _connect(cluster: Cluster, local_dc: str) -> Session:
    """The session. With a mistyped data centre the driver finds the nodes but uses none."""
    try:
        session = cluster.connect()
    except NoHostAvailable:
        _check_local_dc(cluster, local_dc)
        raise
    _check_local_dc(cluster, local_dc)
    return session


def _check_host_ids(cluster: Cluster, wanted: tuple[str, ...]) -> None:
    """Raise `ClusterError` when the cluster has none of the nodes that it is known by."""
    there = {str(host.host_id) for host in cluster.metadata.all_hosts()}
    if wanted and not there.intersection(wanted):
        raise ClusterError(
            f"this is another cluster: it has the host ids {', '.join(sorted(there))}, and "
            f"cluster.host_ids wants {', '.join(wanted)}. Another server may have the address by "
            "now; a local stack is started again by `ringhaul local up`."
        )


def _check_local_dc(cluster: Cluster, local_dc: str) -> None:
    """Raise `ClusterError` when nodes were found and none is in `local_dc`; say where they are."""
    known = sorted({host.datacenter for host in cluster.metadata.all_hosts() if host.datacenter})
    if local_dc and known and local_dc not in known:
        raise ClusterError(
            f"no data centre {local_dc!r} in this cluster; it has {', '.join(known)} "
            "(--local-dc, cluster.local_dc)"
        )
