"""Cassandra's own command-line tools, run from the jars of the local stack."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from producer.local.jars import cassandra_jars
from producer.local.java import find_java
from producer.local.layout import load_layout
from producer.local.node_files import _EXPORTS, _OPENS

NODETOOL = "org.apache.cassandra.tools.NodeTool"
_LOADER = "org.apache.cassandra.tools.BulkLoader"


def tool_command(
    main: str,
    *arguments: str,
    cache_dir: Path,
    scratch: Path,
    jars: Sequence[Path] = (),
    config: Path | None = None,
) -> list[str]:
    """Return the command line of a tool, given by its class. `scratch`: a folder it may use.

    `jars`: of another version than the local stack's. `config`: a node's, which tools need
    that read its files.
    """
    jars = jars or cassandra_jars(cache_dir)
    jamm = next(jar for jar in jars if "jamm" in jar.name)
    return [
        _java(), "-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        *(f"--add-exports={module}=ALL-UNNAMED" for module in _EXPORTS),
        *(f"--add-opens={module}=ALL-UNNAMED" for module in _OPENS),
        f"-javaagent:{jamm}", f"-Dcassandra.storagedir={scratch}",
        *([f"-Dcassandra.config={config.as_uri()}"] if config else []),
        "-cp", ":".join(map(str, jars)), main, *arguments,
    ]  # fmt: skip


@cache
def _java() -> str:
    """Return the path of Java. To find it, each candidate is run."""
    return str(find_java().path)


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
