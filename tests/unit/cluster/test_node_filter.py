"""Allow and deny lists of nodes."""

from __future__ import annotations

from cassandra.connection import DefaultEndPoint
from cassandra.policies import SimpleConvictionPolicy
from cassandra.pool import Host

from ringhaul.cluster.node_filter import NodeFilter
from tests.cases import each


@each(
    ("allowed", "denied", "address", "admitted"),
    [
        ((), (), "10.0.0.1", True),
        (("10.0.0.1",), (), "10.0.0.1", True),
        (("10.0.0.1",), (), "10.0.0.2", False),
        (("10.0.0.0/30",), (), "10.0.0.3", True),
        (("10.0.0.0/30",), (), "10.0.0.4", False),
        (("10.0.0.5/30",), (), "10.0.0.4", True),  # host bits are ignored, as by `ip route`
        ((), ("10.0.0.0/8",), "10.200.0.1", False),
        (("10.0.0.0/8",), ("10.0.0.9",), "10.0.0.9", False),
        (("10.0.0.0/8",), ("10.0.0.9",), "10.0.0.8", True),
        (("::1",), (), "::1", True),
        (("10.0.0.0/8",), (), "::1", False),
        ((), ("fd00::/8",), "fd12::1", False),
        ((), ("::/0",), "10.0.0.1", True),
    ],
)
def test_nodes(
    allowed: tuple[str, ...], denied: tuple[str, ...], address: str, admitted: bool
) -> None:
    assert NodeFilter(allowed, denied).admits(address) is admitted


def test_without_lists_it_filters_nothing() -> None:
    assert not NodeFilter((), ())
    assert NodeFilter((), ("10.0.0.1",))
    # and ignores addresses: behind a proxy, nodes have host ids only
    node = Host(DefaultEndPoint("9f2c1d3e-8b4a-4c5d-9e6f-7a8b9c0d1e2f"), SimpleConvictionPolicy)
    NodeFilter((), ()).check([node])
