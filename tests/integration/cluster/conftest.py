"""A cluster with password authentication, and one with TLS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from producer.local.ports import choose_port
from producer.local.stack import Endpoints, Stack
from ringhaul.cluster.connect import ClusterConfig
from tests.certificates import Authority
from tests.services import running_stack


@pytest.fixture
def config(endpoints: Endpoints) -> ClusterConfig:
    """The configuration for the session's node."""
    return ClusterConfig(
        contact_points=tuple(endpoints.contact_points),
        port=endpoints.port,
        local_dc="datacenter1",
    )


@dataclass(frozen=True, kw_only=True)
class GuardedNode:
    """A node that requires a password, and on another port a client certificate as well."""

    stack: Stack
    tls_port: int
    folder: Path  #: with the PEM files named below

    @property
    def endpoints(self) -> Endpoints:
        """The port without TLS."""
        return self.stack.endpoints()

    def pem(self, name: str) -> str:
        """The path of a file in `folder`.

        ca: the authority that node and clients trust. client, client_key: issued by it for a
        client. stranger_ca, stranger, stranger_key: from an authority that the node does not trust.
        """
        return str(self.folder / f"{name}.pem")

    @property
    def tls_config(self) -> ClusterConfig:
        """Return a configuration with everything that the node requires."""
        return ClusterConfig(
            contact_points=("127.0.0.1",),
            port=self.tls_port,
            user="cassandra",
            password="cassandra",
            tls=True,
            tls_ca=self.pem("ca"),
            tls_cert=self.pem("client"),
            tls_key=self.pem("client_key"),
        )


@pytest.fixture(scope="package")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedNode]:
    """A separate node that accepts only its superuser."""
    folder = tmp_path_factory.mktemp("pem")
    known, unknown = Authority("known"), Authority("unknown")
    files = {"ca": known.certificate, "stranger_ca": unknown.certificate}
    files["client_key"], files["client"] = known.issue("a client")
    files["stranger_key"], files["stranger"] = unknown.issue("a stranger")
    for name, text in files.items():
        (folder / f"{name}.pem").write_text(text)
    tls_port = choose_port(["127.0.0.1"])
    # Both between clients and the node, and among nodes
    encryption = {
        "require_client_auth": True,
        "ssl_context_factory": {
            "class_name": "org.apache.cassandra.security.PEMBasedSslContextFactory",
            "parameters": {
                "private_key": "".join(known.issue("a node", "127.0.0.1")),
                "trusted_certificates": known.certificate,
            },
        },
    }
    yaml = {
        "authorizer": "CassandraAuthorizer",
        "permissions_validity": "0ms",
        # Guardrails, which do not apply to superusers
        "column_value_size_fail_threshold": "200KiB",
        "items_per_collection_fail_threshold": 100,
        "native_transport_port_ssl": tls_port,
        "client_encryption_options": {"enabled": True} | encryption,
        "server_encryption_options": {"internode_encryption": "all"} | encryption,
    }
    with running_stack(heap="512M", auth=True, extra_yaml={"127.0.0.1": yaml}) as stack:
        yield GuardedNode(stack=stack, tls_port=tls_port, folder=folder)


@pytest.fixture(scope="package")
def login(guarded: GuardedNode) -> Endpoints:
    """The node that requires a password, without TLS."""
    return guarded.endpoints
