"""Look at the cluster from this host: which nodes answer, and what their clocks say."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from threading import Event
from typing import Any

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Session
from cassandra.policies import HostDistance
from cassandra.query import SimpleStatement

from config.secrets import mask
from ringhaul.cluster.connect import ClusterConfig, close_session, open_session
from ringhaul.cluster.datacentres import local_dc_of
from ringhaul.errors import RinghaulError
from tasks.host.clock import Offset, Reading, combine, now_ms
from tasks.host.report import HostView, Node

#: A node that takes longer to answer is a finding, whatever the settings allow.
ANSWER_S_MAX = 4.0
READINGS = 3
#: A session is ready once it has a connection to one node; to the others they open meanwhile.
POOLS_S = 1.5
_PAUSE_S = 0.1
#: The server's clock, in whole milliseconds.
_STEP_MS = 1.0
_NOW = SimpleStatement(
    "SELECT toUnixTimestamp(now()) FROM system.local", consistency_level=ConsistencyLevel.ONE
)


def impatient(config: ClusterConfig) -> ClusterConfig:
    """Return the connection settings with waits of at most `ANSWER_S_MAX`."""
    return replace(
        config,
        connect_timeout_s=min(config.connect_timeout_s, ANSWER_S_MAX),
        request_timeout_s=min(config.request_timeout_s, ANSWER_S_MAX),
    )


def view_cluster(config: ClusterConfig) -> HostView:
    """Open a session, look and close it. An error is part of what is returned."""
    try:
        session = open_session(impatient(config))
    except RinghaulError as error:
        return HostView(error=mask(str(error)))
    try:
        return view_session(session)
    finally:
        close_session(session, 1.0)


def view_session(session: Session) -> HostView:
    """Return the cluster as this session sees it, with every node of its data centre contacted."""
    metadata = session.cluster.metadata
    policy = session.get_execution_profile(EXEC_PROFILE_DEFAULT).load_balancing_policy
    hosts = sorted(metadata.all_hosts(), key=lambda host: str(host.address))
    used = [host for host in hosts if policy.distance(host) != HostDistance.IGNORED]
    read = dict(zip(used, _read_clocks(session, used), strict=True))
    return HostView(
        name=metadata.cluster_name or "",
        local_dc=local_dc_of(session) or "",
        nodes=tuple(_node(host, read.get(host)) for host in hosts),
    )


def _node(host: Any, seen: tuple[str, Offset | None] | None) -> Node:
    error, clock = seen or ("", None)
    return Node(
        address=str(host.address),
        data_centre=str(host.datacenter or ""),
        release=str(host.release_version or ""),
        used=seen is not None,
        error=error,
        clock=clock,
    )


def _read_clocks(session: Session, hosts: Sequence[Any]) -> list[tuple[str, Offset | None]]:
    """Return for each host why it did not answer, or how far its clock is ahead of ours."""
    give_up = time.monotonic() + POOLS_S
    offsets: dict[Any, list[Offset]] = {host: [] for host in hosts}
    errors = dict.fromkeys(hosts, "")
    open_ = list(hosts)
    while open_:
        answers = [_Answer(session, host) for host in open_]
        for answer in answers:
            answer.wait()
            errors[answer.host] = answer.error
            if answer.offset is not None:
                offsets[answer.host].append(answer.offset)
        waits = time.monotonic() < give_up
        failed = [host for host in open_ if errors[host]]
        open_ = [
            host for host in open_ if (waits if errors[host] else len(offsets[host]) < READINGS)
        ]
        if len(failed) == len(open_) > 0:
            time.sleep(_PAUSE_S)
    return [(errors[host], combine(offsets[host])) for host in hosts]


class _Answer:
    """One reading of one node's clock, on its way."""

    def __init__(self, session: Session, host: Any) -> None:
        self.host, self.error = host, ""
        self.offset: Offset | None = None
        self._done = Event()
        self._before = now_ms()
        try:
            future = session.execute_async(_NOW, host=host, timeout=ANSWER_S_MAX)
        except Exception as error:  # the driver raises what it likes for a node without a pool
            self._failed(error)
        else:
            future.add_callbacks(self._answered, self._failed)

    def wait(self) -> None:
        if not self._done.wait(ANSWER_S_MAX + 1):
            self.error = f"no answer within {ANSWER_S_MAX:.0f} s"

    def _answered(self, rows: Any) -> None:
        after = now_ms()
        (theirs,) = next(iter(rows))
        self.offset = Reading(self._before, after, float(theirs), _STEP_MS).offset
        self._done.set()

    def _failed(self, error: BaseException) -> None:
        self.error = mask((str(error).splitlines() or [type(error).__name__])[0])
        self._done.set()
