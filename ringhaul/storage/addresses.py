"""Decide which addresses a URL of a job may lead to (pure).

A worker is inside a network and reaches what the submitter of a job may not: its own loopback,
machines beside it, and the link-local service from which a cloud hands out the host's credentials.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

#: Where clouds serve a host's own credentials, besides the link-local ranges.
_METADATA = frozenset(
    ip_address(text)
    for text in ("fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16")
)
#: NAT64: the last four bytes are the IPv4 address that is reached.
_NAT64 = ip_network("64:ff9b::/96")


def refusal(text: str, *, private: bool) -> str | None:
    """Return why nothing may be read from an address; None: it may.

    `private`: loopback and private addresses are allowed.
    """
    address = _reached(text)
    if address.is_link_local or address in _METADATA:
        return "is link-local, where clouds hand out a host's credentials"
    if address.is_multicast or address.is_unspecified:
        return "is not the address of a server"
    if not private and not address.is_global:
        kind = "loopback" if address.is_loopback else "private"
        return f"is {kind}; storage.private_addresses lets workers read from there"
    return None


def _reached(text: str) -> IPv4Address | IPv6Address:
    """Return the address at which packets for `text` arrive."""
    address = ip_address(text.partition("%")[0])  # without the interface of an IPv6 address
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address.sixtofour is not None:
            return address.sixtofour
        if isinstance(_NAT64, IPv6Network) and address in _NAT64:
            return IPv4Address(address.packed[-4:])
    return address
