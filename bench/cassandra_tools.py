"""Cassandra's own command-line tools, run from the jars of the local stack."""

from __future__ import annotations

from pathlib import Path

from producer.local.jars import cassandra_jars
from producer.local.java import find_java
from producer.local.layout import load_layout
from producer.local.node_files import _EXPORTS, _OPENS

NODETOOL = "org.apache.cassandra.tools.NodeTool"
_LOADER = "org.apache.cassandra.tools.BulkLoader"


def tool_command(main: str, *arguments: str, cache_dir: Path, scratch: Path) -> list[str]:
    """Return the command line of a tool, given by its class. `scratch`: a folder it may use."""
    jars = cassandra_jars(cache_dir)
    jamm = next(jar for jar in jars if "jamm" in jar.name)
    return [
        str(find_java().path), "-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        *(f"--add-exports={module}=ALL-UNNAMED" for module in _EXPORTS),
        *(f"--add-opens={module}=ALL-UNNAMED" for module in _OPENS),
        f"-javaagent:{jamm}", f"-Dcassandra.storagedir={scratch}",
        "-cp", ":".join(map(str, jars)), main, *arguments,
    ]  # fmt: skip


def loader_command(layout_file: Path, folder: Path, *, cache_dir: Path, scratch: Path) -> list[str]:
    """Return the command of `sstableloader` for the SSTables of `folder` (KEYSPACE/TABLE).

    `layout_file`: that of the local stack whose first node gets them.
    """
    layout = load_layout(layout_file)
    assert layout is not None
    node = layout.nodes[0]
    return tool_command(
        _LOADER, "-d", node.address, "-p", str(node.cql_port), "-sp", str(node.storage_port),
        "--no-progress", str(folder), cache_dir=cache_dir, scratch=scratch,
    )  # fmt: skip
