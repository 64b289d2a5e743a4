"""What the pages show and let people do, decided by the address they are served at."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from config.sections import WebSettings
from ringhaul.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Listening:
    """How Flower is about to serve, by its final options."""

    address: str  #: Empty: every interface.
    unix_socket: str  #: Empty: TCP.
    has_log_in: bool  #: Whether Flower asks for a password or an OAuth log-in.
    read_only: bool | None  #: What Flower's `read_only` says; None: it was not given.


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """What is shown and done at this address."""

    show_data: bool  #: Whether pages may show data of rows.
    read_only: bool  #: Whether our pages change nothing.
    flower_read_only: bool  #: Whether Flower's own pages and API change nothing.
    hosts: frozenset[str]  #: Names of this site, in lower case; any address is accepted as well.
    proxied: frozenset[str]  #: Those among them that a proxy may serve: `web.hosts`.


def exposure_of(web: WebSettings, listening: Listening) -> Exposure:
    """Return what the settings permit at this address.

    Flower's `read_only` decides about its pages and ours; if it was not given, Flower's change
    nothing and `web.read_only` decides about ours.
    Raises `UsageError` if others could reach the pages without a log-in.
    """
    loopback = not listening.unix_socket and is_loopback(listening.address)
    proxied = web.authentication == "proxy"
    if not (loopback or listening.has_log_in or proxied):
        # Flower lets every user of the host write to its socket.
        place = listening.unix_socket or listening.address or "every address of this host"
        raise UsageError(
            f"Flower would serve {place} without a log-in: set FLOWER_BASIC_AUTH=user:password, "
            "web.basic_auth_file or FLOWER_AUTH (OAuth); or web.authentication = proxy, if a proxy "
            "or a network in front of it lets only permitted people in; or leave the address out"
        )
    shown = loopback and not proxied if web.show_data is None else web.show_data
    names = {"localhost", socket.gethostname().lower(), *web.hosts}
    if listening.address:
        names.add(listening.address.lower())
    return Exposure(
        show_data=shown,
        read_only=web.read_only if listening.read_only is None else listening.read_only,
        flower_read_only=listening.read_only is not False,
        hosts=frozenset(names),
        proxied=frozenset(web.hosts),
    )


def is_loopback(address: str) -> bool:
    """Return whether only this host reaches the address. An empty address is every interface."""
    if address.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:  # a name, which may be anything
        return False
