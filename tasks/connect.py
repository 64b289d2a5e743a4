"""Turn settings into connections to the ledger's Redis and to the cluster."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from config.broker import broker_url
from config.errors import ConfigError
from config.known_secrets import remember
from config.secrets import read_secret
from config.settings import Settings
from ringhaul.storage.access import Access, set_access
from ringhaul.storage.sorting import SpillBounds

if TYPE_CHECKING:
    import ssl

    from ringhaul.cluster.connect import ClusterConfig
    from ringhaul.imports.command import ImportCommand
    from ringhaul.imports.folder import ImportFolders
    from ringhaul.ledger.ledger import Ledger
    from ringhaul.records.job import LoadJob

#: The worker's parent process serves all its children: it must not wait long for an absent Redis.
PARENT_PATIENCE_MS = 1000


def open_ledger(
    settings: Settings, patience_ms: int | None = None, *, timeout_s: float | None = None
) -> Ledger:
    """Return the ledger in the broker's Redis; it connects on first use.

    `patience_ms`: how long a call retries while Redis is unavailable; None: the default.
    `timeout_s`: how long it waits for one answer; None: the default.
    """
    from ringhaul.ledger.connection import (  # redis-py: slow to import
        PATIENCE_MS,
        SOCKET_TIMEOUT_S,
        connect,
    )
    from ringhaul.ledger.ledger import Ledger

    broker = settings.broker
    client = connect(
        broker_url(broker),
        tls_ca=_text(broker.tls_ca),
        tls_cert=_text(broker.tls_cert),
        tls_key=_text(broker.tls_key),
        timeout_s=SOCKET_TIMEOUT_S if timeout_s is None else timeout_s,
    )
    return Ledger(
        client,
        unclaimed_ms=int(settings.worker.unclaimed_s * 1000),
        patience_ms=PATIENCE_MS if patience_ms is None else patience_ms,
    )


def cluster_config(settings: Settings) -> ClusterConfig:
    """Return the connection settings for the cluster, with the password read from its file."""
    from ringhaul.cluster.bundle import read_bundle
    from ringhaul.cluster.connect import ClusterConfig  # the driver: slow to import

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
    from ringhaul.cluster.connect import tls_context  # the driver: slow to import

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


def import_command(settings: Settings) -> ImportCommand:
    """Return how nodes' imports are called from this host.

    Raises `SetupUnusable` without nodetool, and `ConfigError` for a password that cannot be read or
    passed on.
    """
    from ringhaul.imports.command import ImportCommand, find_nodetool, nodetool_arguments

    imports = settings.imports
    password = ""
    if imports.jmx_password_file is not None:
        password = read_secret(imports.jmx_password_file, "imports.jmx_password_file")
        if password.split() != [password]:
            raise ConfigError(
                "imports.jmx_password_file: nodetool takes no password with blanks: give the user "
                "of imports.jmx_user another one"
            )
    words = tuple(shlex.split(imports.command))
    if not words:
        login = nodetool_arguments(logs_in=bool(imports.jmx_user))
        words = (*find_nodetool(settings.cache_dir), *login)
    return ImportCommand(
        words=words,
        port=imports.jmx_port,
        user=imports.jmx_user,
        password=password,
        timeout_s=imports.timeout_s,
        connects=not imports.command,
    )


def import_folders(
    settings: Settings, folder: str, keyspace: str, table: str, job_id: str
) -> ImportFolders:
    """Return the folders from which nodes import a job's SSTables. `folder`: the job's."""
    from ringhaul.imports.folder import ImportFolders

    return ImportFolders(
        folder=folder,
        node_folder=str(settings.imports.node_folder or folder),
        keyspace=keyspace,
        table=table,
        job_id=job_id,
    )


def spill_bounds(settings: Settings, job: LoadJob) -> SpillBounds:
    """Return where worker processes keep rows that they sort, and how large SSTables get."""
    sstables = settings.sstables
    return SpillBounds(
        folder=str(sstables.spill_dir or settings.state_dir.absolute() / "sort"),
        spill_bytes_max=sstables.spill_bytes_max,
        sstable_bytes=job.sstable_bytes,
        memory_bytes=sstables.sort_bytes,
    )


def use_storage(settings: Settings) -> None:
    """Restrict this process to the paths and URLs that its settings allow."""
    set_access(storage_access(settings))


def storage_access(settings: Settings) -> Access:
    """Return what this host may open for jobs. In its state folder, which holds a password, that is
    only what jobs keep there: streams and partial results."""
    limits = settings.storage.model_dump()
    if roots := settings.storage.allowed_roots:
        kept = [str(settings.state_dir.absolute() / name) for name in ("spool", "spill")]
        spill = settings.query.spill_dir
        limits["allowed_roots"] = (*roots, *kept, *([str(spill)] if spill else []))
    return Access(**limits)


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
