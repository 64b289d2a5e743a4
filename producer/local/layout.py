"""Layout of the local stack: nodes, ports and pids, stored between commands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from producer.local.cassandra import Node
from producer.local.ports import choose_port, keep_port
from producer.local.state import read_json, write_json

CQL_PORT = 9042
STORAGE_PORT = 7000


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The nodes of the stack, running or not."""

    nodes: tuple[Node, ...]
    auth: bool  #: whether the nodes require a password

    @property
    def addresses(self) -> list[str]:
        """The nodes' addresses; the first is the seed."""
        return [node.address for node in self.nodes]

    @property
    def cql_port(self) -> int:
        """The CQL port, which is the same on all nodes, as drivers expect."""
        return self.nodes[0].cql_port

    def with_addresses_behind(self, rpc_addresses: Mapping[str, str]) -> "Layout":
        """Return the layout with each node's own CQL address, given by public address."""
        nodes = (replace(node, behind=rpc_addresses.get(node.address, "")) for node in self.nodes)
        return replace(self, nodes=tuple(nodes))

    def with_pid(self, index: int, pid: int) -> "Layout":
        """Return the layout with the pid of node `index` set."""
        nodes = list(self.nodes)
        nodes[index] = replace(nodes[index], pid=pid)
        return replace(self, nodes=tuple(nodes))

    @property
    def host_ids(self) -> list[str]:
        """The known host ids of the nodes."""
        return [node.host_id for node in self.nodes if node.host_id]

    def with_host_ids(self, host_ids: Sequence[str]) -> "Layout":
        """Return the layout with the host ids set, in the order of the nodes."""
        nodes = (
            replace(node, host_id=host_id)
            for node, host_id in zip(self.nodes, host_ids, strict=True)
        )
        return replace(self, nodes=tuple(nodes))

    def with_free_ports(self) -> "Layout":
        """Return the layout with new ports in place of stored ones that are now taken.

        Only if no node of the stack is running, since the nodes share their port numbers.
        """
        cql_port = keep_port(self.addresses, self.cql_port)
        storage_port = keep_port(self.addresses, self.nodes[0].storage_port)
        nodes = (replace(node, cql_port=cql_port, storage_port=storage_port) for node in self.nodes)
        return replace(self, nodes=tuple(nodes))

    def save(self, path: Path) -> None:
        """Write the layout to `path`."""
        nodes = [
            {
                "address": node.address,
                "cql_port": node.cql_port,
                "storage_port": node.storage_port,
                "pid": node.pid,
                "host_id": node.host_id,
                "behind": node.behind,
            }
            for node in self.nodes
        ]
        write_json(path, {"auth": self.auth, "nodes": nodes})


def load_layout(path: Path) -> Layout | None:
    """Return the layout that `save` wrote to `path`; None if there is no file."""
    saved = read_json(path)
    if saved is None:
        return None
    nodes = [Node(folder=path.parent / node["address"], **node) for node in saved["nodes"]]
    return Layout(nodes=tuple(nodes), auth=saved["auth"])


def new_layout(folder: Path, nodes_count: int, *, auth: bool, any_port: bool) -> Layout:
    """Return a layout on the default ports, or on free ones if those are taken.

    `any_port`: do not try the default ports.
    """
    addresses = node_addresses(nodes_count)
    cql_port = choose_port(addresses, 0 if any_port else CQL_PORT)
    storage_port = choose_port(addresses, 0 if any_port else STORAGE_PORT)
    nodes = tuple(
        Node(
            folder=folder / address,
            address=address,
            cql_port=cql_port,
            storage_port=storage_port,
            pid=None,
        )
        for address in addresses
    )
    return Layout(nodes=nodes, auth=auth)


def node_addresses(nodes_count: int) -> list[str]:
    """Return loopback addresses: 127.0.0.1 for one node, 127.0.1.1 and up for several."""
    if nodes_count == 1:
        return ["127.0.0.1"]
    return [f"127.0.1.{i}" for i in range(1, nodes_count + 1)]
