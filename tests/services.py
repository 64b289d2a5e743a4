"""Real services for tests: started in temporary folders on free ports, always stopped again.

If a service cannot be started, the test fails; nothing is skipped.
"""

import os
import secrets
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import redis
from cassandra import ConsistencyLevel
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import RoundRobinPolicy

from producer.local.stack import (
    Endpoints,
    ExtraYaml,
    OnProgress,
    Progress,
    Stack,
    Started,
)
from producer.local.valkey import EmbeddedValkey
from tests.acceptance.running import free_port
from tests.proxy import Proxy

#: Generous: the machine may be busy with other work.
REQUEST_TIMEOUT_S = 60


def user_cache_dir() -> Path:
    """The user's cache folder of ringhaul: tests share the downloaded jars."""
    given = os.environ.get("RINGHAUL_CACHE_DIR")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ringhaul"


#: For nodes that are started once: what they have of tables is not brought to the disk with each
#: change of a schema, of which every test makes three.
NEVER_STARTED_AGAIN = "-Dcassandra.unsafesystem=true"


@contextmanager
def running_stack(
    nodes: int = 1,
    *,
    heap: str | None = None,
    auth: bool = False,
    extra_yaml: ExtraYaml | None = None,
    java: str = NEVER_STARTED_AGAIN,
) -> Iterator[Stack]:
    """A separate stack for the length of the block, in which its nodes stay up; its data is
    removed at the end.

    `java`: more options for the nodes. No other node gets them: a port among them is theirs.
    """
    # The blank in the folder's name finds code that breaks on one.
    with tempfile.TemporaryDirectory(prefix="ringhaul state-") as folder:
        stack = Stack(Path(folder), user_cache_dir(), extra_yaml=extra_yaml)
        try:
            with java_options(java):
                stack.up(nodes, heap=heap, auth=auth, any_port=True)
            yield stack
        finally:
            stack.down(wipe=True)


@contextmanager
def java_options(words: str) -> Iterator[None]:
    """More options for every `java` that is started in the block."""
    before = os.environ.get("JDK_JAVA_OPTIONS", "")
    os.environ["JDK_JAVA_OPTIONS"] = f"{before} {words}".strip()
    try:
        yield
    finally:
        os.environ["JDK_JAVA_OPTIONS"] = before


class NodetoolStack(Stack):
    """A stack whose nodes each have a port for nodetool, on loopback."""

    def __init__(
        self, state_dir: Path, cache_dir: Path, *, extra_yaml: ExtraYaml | None = None
    ) -> None:
        super().__init__(state_dir, cache_dir, extra_yaml=extra_yaml)
        self.jmx_ports: dict[str, int] = {}  #: by the address of the node

    def up(
        self,
        nodes: int | None = None,
        *,
        heap: str | None = None,
        auth: bool | None = None,
        any_port: bool = False,
        on_progress: OnProgress = lambda progress: None,
    ) -> Started:
        with java_options(""):
            java = os.environ["JDK_JAVA_OPTIONS"]

            def with_port(step: Progress) -> None:
                on_progress(step)
                address = step.text.removeprefix("starting Cassandra at ")
                if address != step.text:
                    port = self.jmx_ports.setdefault(address, free_port())
                    option = f"-Dcassandra.jmx.local.port={port}"
                    os.environ["JDK_JAVA_OPTIONS"] = f"{java} {option}".strip()

            return super().up(nodes, heap=heap, auth=auth, any_port=any_port, on_progress=with_port)


class ProxiedRing(NamedTuple):
    """Three nodes; clients reach the third through a proxy, without knowing it."""

    stack: NodetoolStack
    proxy: Proxy


@contextmanager
def running_ring() -> Iterator[ProxiedRing]:
    """Run three nodes during the block; their data is removed at the end."""
    known_as, behind = "127.0.1.3", "127.0.2.3"
    extra_yaml = {known_as: {"rpc_address": behind, "broadcast_rpc_address": known_as}}
    proxies: list[Proxy] = []
    with tempfile.TemporaryDirectory(prefix="ringhaul state-") as folder:
        stack = NodetoolStack(Path(folder), user_cache_dir(), extra_yaml=extra_yaml)

        def stand_in_front(step: Progress) -> None:
            # The port is chosen by now, but the node is not contacted yet.
            if step.text.endswith(f" at {known_as}"):
                port = stack.nodes()[2].cql_port
                proxies.append(Proxy((known_as, port), (behind, port)))

        try:
            stack.up(3, any_port=True, on_progress=stand_in_front)
            yield ProxiedRing(stack, *proxies)
        finally:
            stack.down(wipe=True)
            for proxy in proxies:
                proxy.stop()


@contextmanager
def running_valkey() -> Iterator[EmbeddedValkey]:
    """Run a new Valkey (AOF, password) during the block."""
    with (
        tempfile.TemporaryDirectory(prefix="ringhaul-valkey-") as folder,
        EmbeddedValkey(Path(folder)) as valkey,
    ):
        yield valkey


def restart_valkey(valkey: EmbeddedValkey, number: signal.Signals = signal.SIGKILL) -> None:
    """End the server by a signal, if it runs, and start it again on its port, with the data of its
    AOF."""
    pid = valkey.pid
    assert pid is not None
    port = valkey.port
    if valkey.running():
        _write_to_disk(valkey)
        os.kill(pid, number)
    while valkey.running():
        os.sched_yield()
    valkey.release()
    valkey.acquire()
    assert valkey.port == port, "another process took the port in between"


def _write_to_disk(valkey: EmbeddedValkey) -> None:
    """Have the server write its AOF now: while a disk is busy, it postpones writes for 2 s."""
    with redis.Redis.from_url(valkey.url) as client:
        client.set("ringhaul:last", 1, px=1)  # WAITAOF waits for writes of its own connection
        assert client.execute_command("WAITAOF", 1, 0, 10_000)[0] == 1


def patient_cluster(contact_points: Sequence[str], **options: Any) -> Cluster:
    """Return a cluster of the driver whose sessions open on a busy machine, too.

    By default it gives the queries of its control connection 2 s."""
    return Cluster(
        contact_points,
        connect_timeout=REQUEST_TIMEOUT_S,
        control_connection_timeout=REQUEST_TIMEOUT_S,
        monitor_reporting_enabled=False,
        **options,
    )


@contextmanager
def connected(
    ends: Endpoints,
    consistency: int = ConsistencyLevel.LOCAL_ONE,
    *,
    protocol_version: int = 5,
) -> Iterator[Session]:
    """A driver session on a stack, with the stack's password if it needs one."""
    auth = None
    if ends.user is not None and ends.password_file is not None:
        auth = PlainTextAuthProvider(ends.user, ends.password_file.read_text())
    profile = ExecutionProfile(
        load_balancing_policy=RoundRobinPolicy(),
        consistency_level=consistency,
        request_timeout=REQUEST_TIMEOUT_S,
    )
    cluster = patient_cluster(
        ends.contact_points,
        port=ends.port,
        auth_provider=auth,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        protocol_version=protocol_version,
    )
    try:
        yield cluster.connect()
    finally:
        cluster.shutdown()


@contextmanager
def fresh_keyspace(session: Session, replication_factor: int = 1) -> Iterator[str]:
    """The name of an empty keyspace, dropped at the end of the block."""
    # No digits, and no letters of hexadecimal numbers: tests look for those in what a command says.
    name = f"t_{''.join(secrets.choice('ghjkmnpqrstvwxyz') for _ in range(10))}"
    session.execute(
        f"CREATE KEYSPACE {name} WITH replication = "
        f"{{'class': 'SimpleStrategy', 'replication_factor': {replication_factor}}}"
    )
    try:
        yield name
    finally:
        session.execute(f"DROP KEYSPACE {name}")
