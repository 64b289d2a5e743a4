"""The settings of connections to the cluster: of the driver's, and to the nodes' storage ports."""

from __future__ import annotations

import ssl

from config.known_secrets import remember
from config.secrets import read_secret
from config.settings import Settings
from ringhaul.cluster.bundle import read_bundle
from ringhaul.cluster.connect import ClusterConfig, tls_context


def cluster_config(settings: Settings) -> ClusterConfig:
    """Return the connection settings for the cluster, with the password read from its file."""
    cluster = settings.cluster
    bundle = None
    if cluster.secure_connect_bundle is not None:
        bundle = read_bundle(str(cluster.secure_connect_bundle))
        remember(bundle.password)
    password = ""
    if cluster.password_file is not None:
        password = read_secret(cluster.password_file, "cluster.password_file")
    return ClusterConfig(
        contact_points=cluster.contact_points,
        port=cluster.port,
        bundle=bundle,
        local_dc=cluster.local_dc,
        host_ids=cluster.host_ids,
        allowed_nodes=cluster.allowed_nodes,
        denied_nodes=cluster.denied_nodes,
        user=cluster.user,
        password=password,
        tls=cluster.tls,
        tls_ca=str(cluster.tls_ca or ""),
        tls_cert=str(cluster.tls_cert or ""),
        tls_key=str(cluster.tls_key or ""),
        tls_verify_hostname=cluster.tls_verify_hostname,
        compression=cluster.compression,
        consistency=cluster.consistency,
        connect_timeout_s=cluster.connect_timeout_s,
        request_timeout_s=cluster.request_timeout_s,
    )


def streaming_tls(settings: Settings) -> ssl.SSLContext | None:
    """Return the TLS context for the nodes' storage ports; None: they are not encrypted.

    Raises `UsageError` for files that cannot be used.
    """
    streaming = settings.streaming
    if not streaming.tls:
        return None
    return tls_context(
        "streaming",
        ca=str(streaming.tls_ca or ""),
        cert=str(streaming.tls_cert or ""),
        key=str(streaming.tls_key or ""),
        verify_hostname=streaming.tls_verify_hostname,
    )
