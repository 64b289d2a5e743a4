"""Cassandra nodes that all test processes of a run share.

The process that runs pytest makes a folder for the run, and the processes that xdist starts get to
know it. The first test that needs a node starts it under a lock; the process that made the folder
stops all of them at its end, whoever started them.

Whatever a test process starts inherits a variable that names the run. By it, the end of a run finds
what a test process left behind that crashed, or was killed before its fixtures ended.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from producer.local import processes
from producer.local.stack import Stack
from tests.acceptance.running import free_port
from tests.services import NEVER_STARTED_AGAIN, java_options, user_cache_dir

#: The environment variable that names the folder of the run: no setting of ringhaul.
RUN_VARIABLE = "TESTS_RUN_FOLDER"
#: Processes that end with the test process that started them.
_FORK_SERVER = "fork_server.py"

#: Who may use nodetool. The node and nodetool read it from files of one form.
JMX_USER, JMX_PASSWORD = "operator", "opens-JMX"
#: Names of the files with the password: nodetool's, and the node's.
_FOR_NODETOOL, _FOR_THE_NODE = "of-nodetool", "of-the-node"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of node, by what its cassandra.yaml has beside the usual."""

    name: str
    heap: str
    settings: Mapping[str, object] = field(default_factory=dict)


#: What tables may have only if the node allows it; and files that tests damage do not stop a node.
_FEATURES: Mapping[str, object] = {
    "cdc_enabled": True,
    "materialized_views_enabled": True,
    "user_defined_functions_enabled": True,
    "disk_failure_policy": "ignore",
}

#: The node of nearly all tests.
ORDINARY = Kind(name="ordinary", heap="1G", settings=_FEATURES)

#: Its files are of the version that 5.0 writes once no older node is left.
NEWEST_FILES = Kind(
    name="newest-files",
    heap="512M",
    settings={**_FEATURES, "storage_compatibility_mode": "NONE"},
)

#: Low limits. Its tests, which run in one process (`tests/rooms.py`), may also hold it for a while
#: or have it refuse old protocols.
STRICT = Kind(
    name="strict",
    heap="512M",
    settings={
        "max_mutation_size": "256KiB",
        "tombstone_warn_threshold": 500,
        "tombstone_failure_threshold": 1000,
        "partition_denylist_enabled": "true",
        "denylist_consistency_level": "ONE",
        "denylist_refresh": "1s",
        "disk_failure_policy": "ignore",
    },
)

KINDS = (ORDINARY, NEWEST_FILES, STRICT)


@dataclass(frozen=True)
class SharedNode:
    """A running node with a port for nodetool, which asks for a password."""

    stack: Stack
    jmx_port: int
    jmx_password_file: Path  #: for nodetool

    @property
    def data(self) -> Path:
        """The node's data folder."""
        (node,) = self.stack.nodes()
        return node.folder / "data"


class SharedServers:
    """The servers of one run of pytest, in the run's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def node(self, kind: Kind = ORDINARY) -> SharedNode:
        """Return the run's node of a kind; start it if no process has done so."""
        folder = self._folder_of(kind)
        stack = Stack(folder, user_cache_dir(), extra_yaml={"127.0.0.1": kind.settings})
        with self._locked(kind):
            started = folder / "started.json"
            if not started.exists():
                folder.mkdir(exist_ok=True)
                port = free_port()
                with java_options(f"{NEVER_STARTED_AGAIN} {jmx_options(folder, port)}"):
                    stack.up(1, heap=kind.heap, any_port=True)
                started.write_text(json.dumps({"jmx_port": port}))
            port = json.loads(started.read_text())["jmx_port"]
        return SharedNode(stack, port, folder / _FOR_NODETOOL)

    def pids(self) -> list[int]:
        """Process ids of the servers that were started."""
        found = []
        for kind in KINDS:
            found += [pid for pid, _ in self._servers(kind)]
        return found

    def core_s(self) -> float:
        """Seconds of CPU that the servers have used."""
        total_s = 0.0
        for pid in self.pids():
            with suppress(psutil.Error):
                times = psutil.Process(pid).cpu_times()
                total_s += times.user + times.system
        return total_s

    def stop(self) -> list[str]:
        """Kill the servers, and what the run's processes left behind; remove the run's folder.

        Call it when the other test processes have ended. Return what was left behind, besides the
        shared servers: pids and command lines.
        """
        for kind in KINDS:
            with self._locked(kind):
                processes.stop_servers(self._servers(kind), timeout_s=0)
        found = []
        for process in processes_of(self.folder):
            with suppress(psutil.Error):
                found.append(f"{process.pid} {' '.join(process.cmdline())}")
                process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        return found

    def _servers(self, kind: Kind) -> list[tuple[int, str]]:
        """Pid and proof of each server of a kind; see `processes.stop_servers`."""
        stack = Stack(folder := self._folder_of(kind), user_cache_dir())
        servers = [(node.pid, node.proof) for node in stack.nodes()]
        servers.append((stack.valkey.pid, str(folder / "valkey" / "valkey.conf")))
        return [(pid, proof) for pid, proof in servers if pid is not None]

    def _folder_of(self, kind: Kind) -> Path:
        # The blank in the folder's name finds code that breaks on one.
        return self.folder / f"{kind.name} state"

    @contextmanager
    def _locked(self, kind: Kind) -> Iterator[None]:
        with (self.folder / f"{kind.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def processes_of(run: Path) -> list[psutil.Process]:
    """Return the running processes that a test process of a run started, or one of theirs."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            ours = process.environ().get(RUN_VARIABLE) == str(run) and process.pid != os.getpid()
            if ours and not any(word.endswith(_FORK_SERVER) for word in process.cmdline()):
                found.append(process)
    return found


def jmx_options(folder: Path, port: int) -> str:
    """Options of `java` for a node that serves nodetool at a port of loopback, with a password,
    whose files are made in `folder`."""
    for name in (_FOR_NODETOOL, _FOR_THE_NODE):
        file = folder / name
        file.touch(0o600)
        file.write_text(f"{JMX_USER} {JMX_PASSWORD}\n")
    return (
        f"-Dcassandra.jmx.local.port={port} "
        "-Dcom.sun.management.jmxremote.authenticate=true "
        f'-Dcom.sun.management.jmxremote.password.file="{folder / _FOR_THE_NODE}" '
        "--add-exports=java.management/com.sun.jmx.remote.security=ALL-UNNAMED"
    )
