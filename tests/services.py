"""Real services for tests: started in temporary folders on free ports, always stopped again.

Nothing here is skipped when a service cannot be started: that is a failed test.
"""

import os
import secrets
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import RoundRobinPolicy

from producer.local.stack import Endpoints, Stack
from producer.local.valkey import EmbeddedValkey

#: Statements of tests run on a machine that may be busy with other things.
REQUEST_TIMEOUT_S = 60


def user_cache_dir() -> Path:
    """The user's cache folder of ringhaul: tests share the jars that are there already."""
    given = os.environ.get("RINGHAUL_CACHE_DIR")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ringhaul"


@contextmanager
def running_stack(
    nodes: int = 1, *, heap: str | None = None, auth: bool = False
) -> Iterator[Stack]:
    """A stack of its own for the length of the block; its data is removed at the end."""
    # The blank in the folder's name is there to find code that breaks on one.
    with tempfile.TemporaryDirectory(prefix="ringhaul state-") as folder:
        stack = Stack(Path(folder), user_cache_dir())
        try:
            stack.up(nodes, heap=heap, auth=auth, any_port=True)
            yield stack
        finally:
            stack.down(wipe=True)


@contextmanager
def running_valkey() -> Iterator[EmbeddedValkey]:
    """A Valkey of its own (AOF, password) for the length of the block."""
    with (
        tempfile.TemporaryDirectory(prefix="ringhaul-valkey-") as folder,
        EmbeddedValkey(Path(folder)) as valkey,
    ):
        yield valkey


def restart_valkey(valkey: EmbeddedValkey, number: signal.Signals = signal.SIGKILL) -> None:
    """End the server by a signal and start it again on its port, with the data of its AOF."""
    pid = valkey.pid
    assert pid is not None
    port = valkey.port
    os.kill(pid, number)
    while valkey.running():
        os.sched_yield()
    valkey.release()
    valkey.acquire()
    assert valkey.port == port, "another process took the port in between"


@contextmanager
def connected(ends: Endpoints) -> Iterator[Session]:
    """A driver session on a stack, with the stack's own password if it asks for one."""
    auth = None
    if ends.user is not None and ends.password_file is not None:
        auth = PlainTextAuthProvider(ends.user, ends.password_file.read_text())
    profile = ExecutionProfile(
        load_balancing_policy=RoundRobinPolicy(), request_timeout=REQUEST_TIMEOUT_S
    )
    cluster = Cluster(
        ends.contact_points,
        port=ends.port,
        auth_provider=auth,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        protocol_version=5,
        monitor_reporting_enabled=False,
    )
    try:
        yield cluster.connect()
    finally:
        cluster.shutdown()


@contextmanager
def fresh_keyspace(session: Session, replication_factor: int = 1) -> Iterator[str]:
    """The name of an empty keyspace, dropped at the end of the block."""
    name = f"t_{secrets.token_hex(5)}"
    session.execute(
        f"CREATE KEYSPACE {name} WITH replication = "
        f"{{'class': 'SimpleStrategy', 'replication_factor': {replication_factor}}}"
    )
    try:
        yield name
    finally:
        session.execute(f"DROP KEYSPACE {name}")
