"""One node of an old Cassandra version, started from its artifacts in the Maven registry."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from producer.local.java import Java
from producer.local.node_files import cassandra_yaml, logback_xml, node_command
from producer.local.ports import choose_port

#: Another address than the local stack's, which may be up.
ADDRESS = "127.0.9.1"
START_TIMEOUT_S = 180
_OPTIONS_V4 = b"\x04\x00\x00\x00\x05\x00\x00\x00\x00"
_SUPPORTED_V4 = b"\x84\x00\x00\x00\x06"


@dataclass(frozen=True)
class Version:
    """A version, and the Java that it runs on."""

    number: str
    java: int
    #: More settings of cassandra.yaml, and what they are called.
    settings: Mapping[str, object] = field(default_factory=dict)
    called: str = ""

    @property
    def line(self) -> tuple[int, int]:
        """Its major and minor version."""
        major, minor, *_ = self.number.split(".")
        return int(major), int(minor)


VERSIONS = (
    Version("3.11.19", 8),
    Version("4.0.17", 11),
    Version("4.1.9", 11),
    Version("5.0.9", 17),
    # As in the cassandra_latest.yaml that comes with 5.0
    Version(
        "5.0.9",
        17,
        {"storage_compatibility_mode": "NONE", "sstable": {"selected_format": "bti"}},
        "with storage_compatibility_mode NONE",
    ),
)


def jars_of(version: Version, folder: Path) -> list[Path]:
    """Return the jars of a node; the Maven client resolves and checks them."""
    import jgo

    cache = folder / f"cassandra-{version.number}"
    found = sorted(cache.rglob("*.jar"))
    if not any(path.name == f"cassandra-all-{version.number}.jar" for path in found):
        wanted = [f"org.apache.cassandra:cassandra-all:{version.number}"]
        if version.line < (4, 0):  # not optional for its start
            wanted.append(f"org.apache.cassandra:cassandra-thrift:{version.number}")
        jgo.build("+".join(wanted), cache_dir=cache)
        found = sorted(cache.rglob("*.jar"))
    return found


@contextmanager
def running_node(
    version: Version, java: Path, jars: list[Path], folder: Path, jmx_port: int
) -> Iterator[int]:
    """Run a node whose data is in `folder`; yield its CQL port at `ADDRESS`. Nodetool reaches it at
    `jmx_port` on loopback."""
    port, storage_port = choose_port([ADDRESS]), choose_port([ADDRESS])
    folder.mkdir(parents=True)
    (folder / "cassandra.yaml").write_text(_yaml(version, folder, port, storage_port))
    (folder / "logback.xml").write_text(logback_xml(folder / "system.log"))
    command = node_command(Java(java, version.java), jars, folder, heap="512M", nodes_count=1)
    command.insert(1, f"-Dcassandra.jmx.local.port={jmx_port}")
    if version.java == 8:  # it has no modules
        command = [
            word for word in command if not word.startswith(("--add-exports", "--add-opens"))
        ]
    with (folder / "console.log").open("w") as console:
        process = subprocess.Popen(command, stdout=console, stderr=console, cwd=folder)
        try:
            deadline = time.monotonic() + START_TIMEOUT_S
            while not _answers(port):
                assert process.poll() is None, f"the node ended: {_end_of_log(folder)}"
                assert time.monotonic() < deadline, f"no answer: {_end_of_log(folder)}"
                time.sleep(0.2)
            yield port
        finally:
            process.kill()
            process.wait()


def _end_of_log(folder: Path) -> str:
    return (folder / "console.log").read_text(errors="replace")[-800:]


def _yaml(version: Version, folder: Path, port: int, storage_port: int) -> str:
    text = cassandra_yaml(
        folder,
        ADDRESS,
        cql_port=port,
        storage_port=storage_port,
        seed=ADDRESS,
        auth=False,
        extra={"num_tokens": 16, **version.settings},
    )
    settings = json.loads(text)
    if version.line < (4, 1):
        del settings["commitlog_sync_period"]
        settings["commitlog_sync_period_in_ms"] = 10_000
    if version.line < (4, 0):
        settings |= {"start_native_transport": True, "start_rpc": False}  # rpc: Thrift
        # Seeds have no port: all nodes have the same one.
        settings["seed_provider"][0]["parameters"][0]["seeds"] = ADDRESS
    return json.dumps(settings, indent=2)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((ADDRESS, port), timeout=2) as connection:
            connection.sendall(_OPTIONS_V4)
            return connection.recv(5) == _SUPPORTED_V4
    except OSError:
        return False
