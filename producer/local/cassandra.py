"""One Cassandra node: write its files, start it, wait until it answers CQL, check its state.

"Answers" means that it replied SUPPORTED to an OPTIONS frame of the native protocol: an open port
is not enough, since the server opens it before it serves.
"""

import shutil
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from producer.local import processes
from producer.local.errors import LocalStackError, PortTaken
from producer.local.java import Java
from producer.local.node_files import (
    TEMPORARY,
    cassandra_yaml,
    logback_xml,
    node_command,
    storage_argument,
)
from producer.local.ports import PATIENCE_S, is_open
from producer.local.state import private_dir
from ringhaul.plain_text import lines_of

#: A cold node takes 5 to 15 s on two cores, a third node 30 s; a loaded machine several times that.
START_TIMEOUT_S = 180
#: A drain only flushes memory; if it is cut short, the commit log holds the rest.
STOP_TIMEOUT_S = 30

#: Cassandra's default superuser, for a stack with passwords; the nodes listen on loopback only.
SUPERUSER = "cassandra"
SUPERUSER_PASSWORD = "cassandra"

# In the newest protocol version, since a node may be configured to refuse older ones.
_OPTIONS_V5 = b"\x05\x00\x00\x00\x05\x00\x00\x00\x00"
_SUPPORTED_V5_START = b"\x85\x00\x00\x00\x06"
_LOG_LINES_SHOWN = 15
#: Cassandra's messages if it cannot bind its storage port, or its CQL port.
_PORT_TAKEN = ("is in use by another process", "Failed to bind port", "Address already in use")
#: Begins what Cassandra logs at each start.
_START = "Configuration location: "


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node of the local stack, running or not."""

    folder: Path  #: its configuration, data and logs
    address: str  #: loopback address of CQL and of gossip
    cql_port: int
    storage_port: int
    pid: int | None  #: process id of the last start
    host_id: str = ""  #: assigned by Cassandra on the first start; empty until it is known
    behind: str = ""  #: its own CQL address if a proxy listens on `address`

    @property
    def log(self) -> Path:
        """Cassandra's own log."""
        return self.folder / "system.log"

    @property
    def console(self) -> Path:
        """Output of the JVM: shows why it did not start if Cassandra's log does not."""
        return self.folder / "console.log"

    @property
    def proof(self) -> str:
        """The command line argument that identifies the node's process."""
        return storage_argument(self.folder)

    def runs(self) -> bool:
        """Return whether the node's process is running."""
        return self.pid is not None and processes.is_ours(self.pid, self.proof)

    def answers(self) -> bool:
        """Return whether this node, and not another server on its port, answers CQL."""
        own = self._listens(self.cql_address, self.cql_port)
        return own and answers_cql(self.address, self.cql_port)

    def port_of_others(self) -> int | None:
        """Return a port of this node on which another process listens; None if there is no such."""
        for address, port in (
            (self.cql_address, self.cql_port),
            (self.address, self.storage_port),
        ):
            # Check before and after: the node may start to listen in between.
            if (
                not self._listens(address, port)
                and is_open(address, port)
                and not self._listens(address, port)
            ):
                return port
        return None

    @property
    def cql_address(self) -> str:
        """The address on which its process listens for CQL."""
        return self.behind or self.address

    def _listens(self, address: str, port: int) -> bool:
        return self.pid is not None and self.runs() and processes.listens(self.pid, address, port)


def start_node(
    node: Node,
    *,
    java: Java,
    jars: Sequence[Path],
    heap: str,
    seed: str,
    nodes_count: int,
    auth: bool,
    extra_yaml: Mapping[str, object],
) -> int:
    """Write the node's files and start it. Return its pid without waiting for CQL."""
    private_dir(node.folder)
    (node.folder / "cassandra.yaml").write_text(
        cassandra_yaml(
            node.folder,
            node.address,
            cql_port=node.cql_port,
            storage_port=node.storage_port,
            seed=seed,
            auth=auth,
            extra=extra_yaml,
        )
    )
    shutil.rmtree(node.folder / TEMPORARY, ignore_errors=True)
    private_dir(node.folder / TEMPORARY)
    (node.folder / "logback.xml").write_text(logback_xml(node.log))
    command = node_command(java, jars, node.folder, heap=heap, nodes_count=nodes_count)
    return processes.start_server(command, log=node.console, cwd=node.folder)


def wait_for_cql(node: Node, timeout_s: float = START_TIMEOUT_S) -> None:
    """Wait until the node answers CQL.

    Raises `PortTaken` if another process has one of its ports, and `LocalStackError` with the end
    of its log if it dies or `timeout_s` passes.
    """
    deadline = time.monotonic() + timeout_s
    free_s = time.monotonic()
    while not node.answers():
        port = node.port_of_others()
        if port is None:
            free_s = time.monotonic()
        elif time.monotonic() - free_s > PATIENCE_S or not node.runs():
            raise PortTaken(
                f"port {port} of {node.address} belongs to "
                f"{processes.listener(node.address, port)}, not to this stack's Cassandra node"
            )
        if not node.runs():
            # The log is needed too: the other process may have released the port since.
            if line := _line_of_port_taken(node):
                raise PortTaken(
                    f"another process took a port of Cassandra at {node.address} while it started "
                    f"(CQL {node.cql_port}, storage {node.storage_port}). Its log says: {line}"
                )
            what = f"Cassandra at {node.address} ended while starting."
            raise LocalStackError(_with_log(node, what))
        if time.monotonic() >= deadline:
            why = (
                f"Cassandra at {node.address} did not answer CQL on port {node.cql_port} "
                f"within {timeout_s:.0f} s."
            )
            raise LocalStackError(_with_log(node, why))
        time.sleep(processes.POLL_S)


def answers_cql(address: str, port: int, timeout_s: float = 2) -> bool:
    """Return whether a server at this address answers OPTIONS with SUPPORTED."""
    try:
        with socket.create_connection((address, port), timeout=timeout_s) as connection:
            connection.sendall(_OPTIONS_V5)
            reply = b""
            while len(reply) < len(_SUPPORTED_V5_START):
                part = connection.recv(64)
                if not part:
                    return False
                reply += part
    except OSError:
        return False
    return reply.startswith(_SUPPORTED_V5_START)


def _line_of_port_taken(node: Node) -> str:
    """Return the line in the logs of the node's last start that says that a port was taken: it may
    be anywhere, since other errors may follow. Empty if there is no such line.

    The user's Java options may name the port.
    """
    for log in (node.log, node.console):
        with suppress(FileNotFoundError):
            text = log.read_text(encoding="utf-8", errors="replace")
            _, _, last_start = text.rpartition(_START)
            for line in last_start.splitlines():
                if any(words in line for words in _PORT_TAKEN):
                    return line.strip()
    return ""


def _with_log(node: Node, what: str) -> str:
    """Return `what`, followed by the last lines and the path of the more informative log."""
    for log in (node.log, node.console):
        lines = _problem_lines(log)
        if lines:
            return lines_of([f"{what} The end of {log}:", *(f"    {line}" for line in lines)])
    return f"{what} It wrote no log in {node.folder}."


def _problem_lines(log: Path) -> list[str]:
    """Return the last error and the lines after it, else the last lines; empty without a log."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    first_error = next(
        (i for i in range(len(lines) - 1, -1, -1) if " ERROR " in f" {lines[i]}"),
        max(0, len(lines) - _LOG_LINES_SHOWN),
    )
    return lines[first_error : first_error + _LOG_LINES_SHOWN]
