"""The metadata service of a managed cluster: its nodes, and the proxy in front of them."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from cassandra.connection import SniEndPoint, SniEndPointFactory

from ringhaul.cluster.bundle import SETTING, Bundle
from ringhaul.errors import ClusterError, ClusterUnavailable
from ringhaul.web_client import exchange

#: A real answer has some 500 bytes.
_BYTES_MAX = 1 << 20
_PROXY_PORT = 9042
_DISTRUST = "certificate verify failed"


class NodeBehindProxy(SniEndPoint):  # type: ignore[misc]
    """A node behind a proxy, which learns the node's host id from the TLS handshake.

    All nodes share the proxy's address; so messages name a node by its host id.
    """

    @property
    def address(self) -> str:
        return str(self._server_name)


class NodesBehindProxy(SniEndPointFactory):  # type: ignore[misc]
    """Makes the endpoints of nodes, including nodes that join later."""

    def create(self, row: Any) -> NodeBehindProxy:
        return self._of(super().create(row))

    def create_from_sni(self, sni: str) -> NodeBehindProxy:
        return self._of(super().create_from_sni(sni))

    def _of(self, made: SniEndPoint) -> NodeBehindProxy:
        return NodeBehindProxy(self._proxy_address, made._server_name, self._port, self._init_index)


@dataclass(frozen=True, kw_only=True)
class ManagedCluster:
    """What the service says about a cluster."""

    local_dc: str
    proxy_host: str
    proxy_port: int
    host_ids: tuple[str, ...]

    @property
    def where(self) -> str:
        """The proxy, for messages."""
        return f"the proxy {self.proxy_host}:{self.proxy_port}"

    def endpoints(self) -> NodesBehindProxy:
        return NodesBehindProxy(self.proxy_host, self.proxy_port)


def ask_service(bundle: Bundle, context: ssl.SSLContext, timeout_s: float) -> ManagedCluster:
    """Return what the bundle's service says, within `timeout_s`.

    Raises `ClusterUnavailable` if it does not answer, and `ClusterError` if it is not trusted, does
    not trust the bundle, or answers something else.
    """
    service = f"the metadata service at {bundle.where} ({SETTING} {bundle.path})"
    try:
        answer = exchange(
            "GET",
            f"https://{_in_url(bundle.host)}:{bundle.port}/metadata",
            timeout_s=timeout_s,
            body_bytes_max=_BYTES_MAX + 1,
            headers={"Accept": "application/json"},
            context=context,
        )
    except ssl.SSLError as error:
        if _DISTRUST in str(error):
            hint = "Is it the bundle of this cluster?"
            raise ClusterError(f"the certificate of {service} is not trusted. {hint}") from None
        hint = "The bundle's certificate may have ended: download the bundle again"
        raise ClusterError(f"{service} ended the TLS handshake: {error.reason}. {hint}") from None
    except (OSError, http.client.HTTPException) as error:
        reason = str(error) or type(error).__name__
        hint = "Is the database active, and is the way to it open?"
        raise ClusterUnavailable(f"{service} does not answer: {reason}. {hint}") from None
    if answer.status != http.client.OK:
        raise ClusterUnavailable(
            f"{service} answered with status {answer.status}. Is the database active? "
            "One that sleeps is woken in the console of the service"
        )
    try:
        return _read(answer.body)
    except ValueError as error:
        raise ClusterError(f"{service} answered something else: {error}") from None


def _in_url(host: str) -> str:
    if ":" in host:
        return f"[{host}]"
    return quote(host, safe="") if host.isascii() else host


def _read(body: bytes) -> ManagedCluster:
    """Read an answer. Raises `ValueError`, with what is wrong."""
    if len(body) > _BYTES_MAX:
        raise ValueError(f"it has more than {_BYTES_MAX:,} bytes")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    contact = found.get("contact_info") if isinstance(found, dict) else None
    if not isinstance(contact, dict):
        raise ValueError("it has no object `contact_info`")
    proxy, local_dc = contact.get("sni_proxy_address"), contact.get("local_dc")
    host_ids = contact.get("contact_points")
    if not isinstance(proxy, str) or not proxy:
        raise ValueError("it has no text `sni_proxy_address`")
    if not isinstance(local_dc, str) or not local_dc:
        raise ValueError("it has no text `local_dc`")
    if not isinstance(host_ids, list) or not host_ids or not _all_texts(host_ids):
        raise ValueError("it has no list `contact_points` of host ids")
    host, port = _split(proxy)
    return ManagedCluster(
        local_dc=local_dc, proxy_host=host, proxy_port=port, host_ids=tuple(host_ids)
    )


def _all_texts(found: Iterable[object]) -> bool:
    return all(isinstance(one, str) and one for one in found)


def _split(proxy: str) -> tuple[str, int]:
    host, colon, port = proxy.rpartition(":")
    if not colon or port.endswith("]"):  # an IPv6 address without a port
        host, port = proxy, str(_PROXY_PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) < 65536:
        raise ValueError("its `sni_proxy_address` is not HOST:PORT")
    return host, int(port)
