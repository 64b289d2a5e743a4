"""Status of the servers of the local stack."""

from dataclasses import dataclass
from pathlib import Path

from producer.local import processes
from producer.local.cassandra import Node
from producer.local.valkey import ADDRESS, EmbeddedValkey


@dataclass(frozen=True, kw_only=True)
class ServerStatus:
    """The status of one server of the stack."""

    name: str  #: "cassandra" or "valkey"
    address: str
    port: int
    pid: int | None  #: None if it is not running
    answers: bool
    rss_bytes: int
    log: Path


@dataclass(frozen=True, kw_only=True)
class StackStatus:
    """The status of the stack."""

    servers: list[ServerStatus]  #: empty if there is no stack and no data of one

    @property
    def up(self) -> bool:
        """Whether every server of the stack answers."""
        return bool(self.servers) and all(server.answers for server in self.servers)

    @property
    def partly(self) -> bool:
        """Whether some servers run, but not all answer."""
        return not self.up and any(server.pid is not None for server in self.servers)


def node_status(node: Node) -> ServerStatus:
    """Return the status of a Cassandra node."""
    runs = node.runs()
    return ServerStatus(
        name="cassandra",
        address=node.address,
        port=node.cql_port,
        pid=node.pid if runs else None,
        answers=runs and node.answers(),
        rss_bytes=processes.rss_bytes(node.pid) if runs and node.pid is not None else 0,
        log=node.log,
    )


def valkey_status(valkey: EmbeddedValkey) -> ServerStatus:
    """Return the status of the Valkey server."""
    pid = valkey.pid if valkey.running() else None
    return ServerStatus(
        name="valkey",
        address=ADDRESS,
        port=valkey.port,
        pid=pid,
        answers=pid is not None and valkey.answers(),
        rss_bytes=0 if pid is None else processes.rss_bytes(pid),
        log=valkey.log,
    )
