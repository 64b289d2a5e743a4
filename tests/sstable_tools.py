"""A node whose `nodetool` can be used, and Cassandra's tools, run from the jars of the stack."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from cassandra.cluster import Session

from bench.cassandra_tools import tool_command
from producer.local.stack import Endpoints
from tests.acceptance.running import free_port
from tests.services import NEVER_STARTED_AGAIN, connected, running_stack, user_cache_dir

#: Who may use nodetool. The node and nodetool read it from files of one form.
JMX_USER, JMX_PASSWORD = "operator", "opens-JMX"

#: What a table may have only if the node allows it.
_FEATURES = {
    "cdc_enabled": True,
    "materialized_views_enabled": True,
    # Tests give it damaged files.
    "disk_failure_policy": "ignore",
}


@dataclass(frozen=True)
class Node:
    """A separate Cassandra node."""

    endpoints: Endpoints
    session: Session
    jmx_port: int
    jmx_password_file: Path | None  #: for nodetool; None: it needs none
    data: Path  #: its data folder
    scratch: Path
    jars: tuple[Path, ...] = ()  #: of a version that is not the local stack's
    verify_flags: tuple[str, ...] = ("-e", "-f")  #: of `nodetool verify`

    def nodetool(self, *arguments: str, code: int = 0) -> str:
        """Run nodetool; it must end with this exit code. Return what it prints."""
        login: tuple[str, ...] = ()
        if self.jmx_password_file is not None:
            login = ("-u", JMX_USER, "-pwf", str(self.jmx_password_file))
        place = ("-h", "127.0.0.1", "-p", str(self.jmx_port), *login)
        return self.tool("NodeTool", *place, *arguments, code=code)

    def tool(self, name: str, *arguments: str, code: int = 0) -> str:
        """Run a tool of Cassandra by the name of its class; see `nodetool`."""
        ended, said = self.try_tool(name, *arguments)
        assert ended == code, f"{name} ends with {ended}: {said[-3000:]}"
        return said

    def try_tool(self, name: str, *arguments: str) -> tuple[int, str]:
        """Run a tool that may fail; return its exit code and what it prints."""
        return try_tool(
            f"org.apache.cassandra.tools.{name}", *arguments, scratch=self.scratch,
            jars=self.jars, config=self.data.parent / "cassandra.yaml",
        )  # fmt: skip

    def sstables(self, table: str) -> list[Path]:
        """Return the Data.db files of a table, `keyspace.name`."""
        keyspace, _, name = table.partition(".")
        return sorted((self.data / keyspace).glob(f"{name}-*/*-Data.db"))


@contextmanager
def running_node(scratch: Path, **settings: object) -> Iterator[Node]:
    """Run a node with a port for nodetool, which asks for a password. `settings`: more of those of
    cassandra.yaml."""
    port = free_port()
    passwords = [scratch / "of-the-node", scratch / "of-nodetool"]
    for file in passwords:
        file.write_text(f"{JMX_USER} {JMX_PASSWORD}\n")
        file.chmod(0o600)
    java = (
        f"{NEVER_STARTED_AGAIN} -Dcassandra.jmx.local.port={port} "
        "-Dcom.sun.management.jmxremote.authenticate=true "
        f"-Dcom.sun.management.jmxremote.password.file={passwords[0]} "
        "--add-exports=java.management/com.sun.jmx.remote.security=ALL-UNNAMED"
    )
    with (
        running_stack(extra_yaml={"127.0.0.1": _FEATURES | settings}, java=java) as stack,
        connected(ends := stack.endpoints()) as session,
    ):
        yield Node(ends, session, port, passwords[1], _data_folder(port), scratch)


def _data_folder(port: int) -> Path:
    """Return the data folder of the node that listens on a port."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        for word in words:
            if word.startswith("-Dcassandra.storagedir=") and _listens(process, port):
                return Path(word.partition("=")[2]) / "data"
    raise AssertionError(f"no node listens on {port}")


def _listens(process: psutil.Process, port: int) -> bool:
    try:
        connections = process.net_connections(kind="inet")
    except psutil.NoSuchProcess:  # the node of another test, which has just ended
        return False
    return any(
        found.laddr.port == port and found.status == psutil.CONN_LISTEN for found in connections
    )


def run_tool(main: str, *arguments: str, scratch: Path) -> str:
    """Run a tool by its class, which must succeed; return what it prints. See `try_tool`."""
    code, said = try_tool(main, *arguments, scratch=scratch)
    assert code == 0, f"{main} ends with {code}: {said[-3000:]}"
    return said


def try_tool(
    main: str,
    *arguments: str,
    scratch: Path,
    jars: Sequence[Path] = (),
    config: Path | None = None,
) -> tuple[int, str]:
    """Run a tool by its class; return its exit code and what it prints.

    The others: see `tool_command`.
    """
    command = tool_command(
        main, *arguments, cache_dir=user_cache_dir(), scratch=scratch, jars=jars,
        config=config,
    )  # fmt: skip
    env = {name: value for name, value in os.environ.items() if name != "JDK_JAVA_OPTIONS"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, check=False, timeout=240
    )
    return done.returncode, done.stdout + done.stderr
