"""Measure what this host gives to processes: descriptors, room on disks, the clock."""

from __future__ import annotations

import os
import resource
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any

from config.settings import Loaded, Settings
from ringhaul import __version__
from tasks.host.clock import synchronised
from tasks.host.report import Folder, Machine

#: Distributions whose version should be the same on all hosts.
PACKAGES = ("celery", "kombu", "redis", "cassandra-driver", "pyarrow", "numpy", "numba")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

#: Settings that differ between hosts for good reasons: paths and names that only one host knows,
#: and defaults for commands, which put them into the job.
OF_ONE_HOST = frozenset(
    {
        *("state_dir", "cache_dir", "logging.level", "logging.format"),
        *("broker.url", "broker.password_file", "broker.tls_ca", "broker.tls_cert"),
        *("broker.tls_key", "cluster.contact_points", "cluster.host_ids", "cluster.local_dc"),
        *("cluster.user", "cluster.password_file", "cluster.tls_ca", "cluster.tls_cert"),
        *("cluster.tls_key", "cluster.consistency", "load.max_errors", "load.strategy"),
        *("load.unit_bytes", "schedule.file", "schedule.lease_s", "schedule.runs_max"),
        *("cluster.secure_connect_bundle", "cluster.compression"),
        *("transform.path", "worker.concurrency", "worker.heartbeat_file"),
        "worker.session_jitter_s",
    }
)


def measure_machine(settings: Settings) -> Machine:
    """Return the facts of this host. May block for as long as a mount does not answer."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    state = settings.state_dir
    return Machine(
        descriptors=None if soft == resource.RLIM_INFINITY else soft,
        folders=(
            measure_folder("state", state),
            measure_folder("spill", settings.query.spill_dir or state / "spill"),
        ),
        synchronised=synchronised(),
        boot=_boot_id(),
    )


def measure_folder(role: str, path: Path) -> Folder:
    """Return the room in a folder, or in the nearest one above that exists: it will be created."""
    there = path.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    error = ""
    if not there.is_dir():
        error = "it is a file" if there == path.absolute() else f"{there} is a file"
    elif not os.access(there, os.W_OK | os.X_OK):
        error = f"this user may not write to {there}"
    try:
        system = os.statvfs(there)
    except OSError as problem:
        return Folder(role=role, path=str(path), error=error or problem.strerror or str(problem))
    free = system.f_bavail * system.f_frsize
    return Folder(role=role, path=str(path), free_bytes=free, error=error)


def versions() -> dict[str, str]:
    """Return the versions that should be the same on all hosts, by name."""
    found = {"ringhaul": __version__, "Python": python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def comparable_settings(loaded: Loaded) -> dict[str, Any]:
    """Return the settings that should be the same on all hosts, by key, without secrets."""
    return {one.key: one.value for one in loaded.describe() if one.key not in OF_ONE_HOST}


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""
