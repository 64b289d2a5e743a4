"""A node whose `nodetool` can be used, and Cassandra's tools, run from the jars of the stack."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from cassandra.cluster import Session

from bench.cassandra_tools import tool_command
from producer.local.stack import Endpoints
from tests.acceptance.running import free_port
from tests.services import NEVER_STARTED_AGAIN, connected, running_stack, user_cache_dir

#: What a table may have only if the node allows it.
_FEATURES = {"cdc_enabled": True, "materialized_views_enabled": True}


@dataclass(frozen=True)
class Node:
    """A Cassandra node of its own."""

    endpoints: Endpoints
    session: Session
    jmx_port: int
    data: Path  #: its data folder
    scratch: Path

    def nodetool(self, *arguments: str, code: int = 0) -> str:
        """Run nodetool; it must end with this exit code. Return what it prints."""
        return run_tool(
            "org.apache.cassandra.tools.NodeTool", "-h", "127.0.0.1", "-p", str(self.jmx_port),
            *arguments, scratch=self.scratch, code=code,
        )  # fmt: skip

    def sstables(self, table: str) -> list[Path]:
        """Return the Data.db files of a table, `keyspace.name`."""
        keyspace, _, name = table.partition(".")
        return sorted((self.data / keyspace).glob(f"{name}-*/*-Data.db"))


@contextmanager
def running_node(scratch: Path) -> Iterator[Node]:
    """Run a node with a port for nodetool."""
    port = free_port()
    java = f"{NEVER_STARTED_AGAIN} -Dcassandra.jmx.local.port={port}"
    with (
        running_stack(extra_yaml={"127.0.0.1": _FEATURES}, java=java) as stack,
        connected(ends := stack.endpoints()) as session,
    ):
        yield Node(ends, session, port, _data_folder(port), scratch)


def _data_folder(port: int) -> Path:
    """Return the data folder of the node that listens on a port."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        for word in words:
            if word.startswith("-Dcassandra.storagedir=") and _listens(process, port):
                return Path(word.partition("=")[2]) / "data"
    raise AssertionError(f"no node listens on {port}")


def _listens(process: psutil.Process, port: int) -> bool:
    return any(
        found.laddr.port == port and found.status == psutil.CONN_LISTEN
        for found in process.net_connections(kind="inet")
    )


def run_tool(main: str, *arguments: str, scratch: Path, code: int = 0) -> str:
    """Run a tool by its class and return what it prints; it must end with this exit code."""
    command = tool_command(main, *arguments, cache_dir=user_cache_dir(), scratch=scratch)
    env = {name: value for name, value in os.environ.items() if name != "JDK_JAVA_OPTIONS"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, check=False, timeout=240
    )
    said = done.stdout + done.stderr
    assert done.returncode == code, f"{main} ends with {done.returncode}: {said[-3000:]}"
    return said
