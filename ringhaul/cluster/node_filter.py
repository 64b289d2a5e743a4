"""Which nodes are used: an allow list and a deny list of addresses and networks."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

from cassandra.policies import HostFilterPolicy, LoadBalancingPolicy
from cassandra.pool import Host

from ringhaul.errors import ClusterError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class NodeFilter:
    """Nodes with an address in `allowed` (empty: any) and not in `denied`.

    Both hold addresses, as nodes announce them to clients, and networks such as 10.0.1.0/24. Raises
    `ValueError` for anything else.
    """

    def __init__(self, allowed: Collection[str], denied: Collection[str]) -> None:
        self._allowed = [ipaddress.ip_network(text, strict=False) for text in allowed]
        self._denied = [ipaddress.ip_network(text, strict=False) for text in denied]

    def __bool__(self) -> bool:
        """Whether it leaves out any node."""
        return bool(self._allowed or self._denied)

    def admits(self, address: str) -> bool:
        """Return whether a node with this address is used."""
        node = ipaddress.ip_address(address)
        if any(_holds(network, node) for network in self._denied):
            return False
        return not self._allowed or any(_holds(network, node) for network in self._allowed)

    def applied_to(self, policy: LoadBalancingPolicy) -> LoadBalancingPolicy:
        """Return the driver's policy without the other nodes: it gives them no connection."""
        return HostFilterPolicy(policy, lambda host: self.admits(str(host.address)))

    def check(self, hosts: Collection[Host]) -> None:
        """Raise `ClusterError` if it leaves none of the cluster's nodes."""
        if self and hosts and not any(self.admits(str(host.address)) for host in hosts):
            addresses = sorted(str(host.address) for host in hosts)
            raise ClusterError(
                "cluster.allowed_nodes and cluster.denied_nodes leave out every node of this "
                f"cluster: {', '.join(addresses[:10])}{', ...' if len(addresses) > 10 else ''}"
            )


def _holds(network: Network, node: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return node.version == network.version and node in network
