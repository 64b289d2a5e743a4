"""Clusters of the official driver, as the articles open them."""

from __future__ import annotations

from typing import Any

from cassandra.cluster import Cluster

#: Each process of a bench opens a session at once, and the driver's 2 s for the control connection
#: are not enough for all of them on a busy machine.
CONNECT_TIMEOUT_S = 60


def open_cluster(host: str, port: int, **options: Any) -> Cluster:
    """Return a cluster with the driver's defaults, but patience while it connects."""
    return Cluster(
        [host],
        port=port,
        connect_timeout=CONNECT_TIMEOUT_S,
        control_connection_timeout=CONNECT_TIMEOUT_S,
        **options,
    )
