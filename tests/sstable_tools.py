"""A node whose `nodetool` can be used, and Cassandra's tools, run from the jars of the stack."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cassandra.cluster import Session

from bench.cassandra_tools import tool_command
from producer.local.stack import Endpoints
from tests.servers import JMX_USER, SharedNode
from tests.services import connected, user_cache_dir


@dataclass(frozen=True)
class Node:
    """A Cassandra node whose nodetool and data folder a test uses."""

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
def opened(shared: SharedNode, scratch: Path) -> Iterator[Node]:
    """A session on a shared node, and its tools. `scratch`: a folder for their files."""
    ends = shared.stack.endpoints()
    with connected(ends) as session:
        yield Node(ends, session, shared.jmx_port, shared.jmx_password_file, shared.data, scratch)


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
