"""The metadata service of a managed cluster, by HTTPS on loopback: its answers and its faults."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ringhaul.cluster.bundle import bundle_context, read_bundle
from ringhaul.cluster.metadata_service import ManagedCluster, ask_service
from ringhaul.errors import ClusterError, ClusterUnavailable
from tests.certificates import Authority
from tests.ports import closed_port
from tests.secure_bundle import Managed, managed_cluster, members_of, server_context

HOST_ID = "0c6d4b4e-0000-0000-0000-000000000001"


@pytest.fixture
def managed(tmp_path: Path) -> Iterator[Managed]:
    with managed_cluster(tmp_path, {HOST_ID: ("127.0.0.1", 1)}) as found:
        yield found


def look_up(path: Path, timeout_s: float = 5.0) -> ManagedCluster:
    bundle = read_bundle(str(path))
    return ask_service(bundle, bundle_context(bundle), timeout_s)


def test_the_nodes_behind_the_proxy(managed: Managed) -> None:
    found = look_up(managed.bundle)
    assert found == ManagedCluster(
        local_dc="datacenter1",
        proxy_host="127.0.0.1",
        proxy_port=managed.proxy.port,
        host_ids=(HOST_ID,),
    )
    endpoint = found.endpoints().create_from_sni(HOST_ID)
    assert endpoint.resolve() == ("127.0.0.1", managed.proxy.port)
    assert endpoint.ssl_options == {"server_hostname": HOST_ID}
    assert endpoint.address == HOST_ID, "messages name the node, not the proxy"
    # The same endpoint is found for a row of system.peers
    assert found.endpoints().create({"host_id": HOST_ID}) == endpoint


def contact(**changed: object) -> bytes:
    info = {"local_dc": "dc", "sni_proxy_address": "proxy:29042", "contact_points": ["a"]}
    return json.dumps({"contact_info": info | changed}).encode()


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("proxy:29042", ("proxy", 29042)),
        ("proxy", ("proxy", 9042)),
        ("[::1]:29042", ("::1", 29042)),
        ("[::1]", ("::1", 9042)),
    ],
)
def test_addresses_of_proxies(managed: Managed, address: str, place: tuple[str, int]) -> None:
    managed.answer = (200, contact(sni_proxy_address=address))
    found = look_up(managed.bundle)
    assert (found.proxy_host, found.proxy_port) == place


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[]", "it has no object `contact_info`"),
        (b'{"contact_info": 5}', "it has no object `contact_info`"),
        (contact(sni_proxy_address=None), "it has no text `sni_proxy_address`"),
        (contact(sni_proxy_address="proxy:x"), "its `sni_proxy_address` is not HOST:PORT"),
        (contact(sni_proxy_address="proxy:0"), "its `sni_proxy_address` is not HOST:PORT"),
        (contact(sni_proxy_address="proxy:" + "9" * 5000), "its `sni_proxy_address` is not HOST"),
        (contact(sni_proxy_address=":29042"), "its `sni_proxy_address` is not HOST:PORT"),
        (contact(local_dc=""), "it has no text `local_dc`"),
        (contact(contact_points=[]), "it has no list `contact_points` of host ids"),
        (contact(contact_points=[""]), "it has no list `contact_points` of host ids"),
        (contact(contact_points="ab"), "it has no list `contact_points` of host ids"),
        (b" " * (1 << 21), "it has more than 1,048,576 bytes"),
    ],
)
def test_answers_that_are_none(managed: Managed, body: bytes, reason: str) -> None:
    managed.answer = (200, body)
    with pytest.raises(ClusterError, match=re.escape(f"answered something else: {reason}")):
        look_up(managed.bundle)


def test_a_database_that_sleeps(managed: Managed) -> None:
    managed.answer = (503, b"")
    with pytest.raises(ClusterUnavailable, match=r"answered with status 503\. Is the database act"):
        look_up(managed.bundle)


def test_nobody_listens(tmp_path: Path) -> None:
    authority = Authority("a managed cluster")
    with closed_port() as port:
        bundle = Managed(tmp_path / "b.zip", members_of(authority, port), None, authority)  # type: ignore[arg-type]
        path = bundle.write(bundle.bundle)
        with pytest.raises(
            ClusterUnavailable,
            match=re.escape(f"the metadata service at 127.0.0.1:{port} ")
            + r".* does not answer: .*Connection refused",
        ):
            look_up(path)


def test_an_authority_that_did_not_sign_the_services_certificate(managed: Managed) -> None:
    other = managed.write(
        managed.bundle.with_name("other.zip"), ca=managed.stranger.certificate.encode()
    )
    with pytest.raises(ClusterError, match=r"is not trusted\. Is it the bundle of this cluster\?"):
        look_up(other)


def test_a_client_certificate_that_the_service_does_not_trust(managed: Managed) -> None:
    key, cert = managed.stranger.issue("a stranger")
    other = managed.write(
        managed.bundle.with_name("other.zip"), key=key.encode(), cert=cert.encode()
    )
    with pytest.raises(ClusterError, match=r"ended the TLS handshake: .* bundle again"):
        look_up(other)


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"])
def test_a_service_that_answers_byte_by_byte(managed: Managed, tmp_path: Path, head: bytes) -> None:
    """Each read takes less than the time limit, all of them more; in the header and in the body."""
    context = server_context(tmp_path, managed.authority, managed.authority)

    def drip() -> None:
        with (
            suppress(OSError),
            listener.accept()[0] as plain,
            context.wrap_socket(plain, server_side=True) as connection,
        ):
            connection.sendall(head)
            while True:
                connection.sendall(b"x")
                time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=drip, daemon=True)
        server.start()
        config = json.loads(managed.members["config.json"]) | {"port": listener.getsockname()[1]}
        path = managed.write(tmp_path / "other.zip", config=json.dumps(config).encode())
        began_s = time.monotonic()
        with pytest.raises(ClusterUnavailable, match=r"its answer takes more than 0\.4 s"):
            look_up(path, 0.4)
        assert time.monotonic() - began_s < 20
        server.join(10)


def test_weak_versions_of_tls_are_refused(managed: Managed) -> None:
    context = bundle_context(read_bundle(str(managed.bundle)))
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
