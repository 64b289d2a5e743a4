"""The proof of SSTables of generated tables on older versions: see `tests/sstable_proof.py`.

`python -m tests.versions.sstables [--cache FOLDER] [--tables N] [VERSION ...]` prints a line for
each version, and exits with 1 if one failed. `SSTABLES_SEED` repeats a run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from producer.local.ports import choose_port
from tests.acceptance.any_table import AnyTable, raw_session
from tests.acceptance.command import Ringhaul
from tests.acceptance.conftest import fleet_settings
from tests.acceptance.running import running_worker
from tests.scale import drawn
from tests.services import (
    connected,
    fresh_keyspace,
    running_valkey,
    user_cache_dir,
)
from tests.sstable_proof import Proof, written_tables
from tests.sstable_tools import Node
from tests.versions.__main__ import endpoints_of
from tests.versions.java import Unavailable, java_for
from tests.versions.node import VERSIONS, Version, jars_of, running_node

TABLES, AT_ONCE = 60, 6


def prove(version: Version, cache: Path, count: int) -> str:
    """Return "proved" with the time taken, or "not tested" and why. Raises if a proof fails."""
    try:
        java = java_for(version.java, cache)
    except Unavailable as error:
        return f"not tested: {error}"
    jars = jars_of(version, cache)
    given = drawn(written_tables(vectors=version.line >= (5, 0)), count)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ringhaul versions-") as name:
        folder = Path(name)
        jmx_port = choose_port(["127.0.0.1"])
        with ExitStack() as stack:
            place = folder / "node"
            port = stack.enter_context(running_node(version, java, jars, place, jmx_port))
            ends = endpoints_of(port)
            session = stack.enter_context(connected(ends, protocol_version=4))
            data = place / "data"
            # Its tools run on the local stack's Java: the old one is without what nodetool needs.
            flags = ("-e",) if version.line < (4, 1) else ("-e", "-f")  # 4.0 does not ask for -f
            node = Node(ends, session, jmx_port, None, data, folder, tuple(jars), flags)
            _prove_all(node, given, folder)
    took = time.monotonic() - began
    return f"{count} tables proved, {datetime.now(UTC).date()}, {took:.0f} s"


def _prove_all(node: Node, given: Sequence[AnyTable], folder: Path) -> None:
    """Prove tables with a worker in front of the node."""
    with running_valkey() as valkey:
        env = fleet_settings(node.endpoints, folder / "state", valkey.url)
        env["RINGHAUL_STREAMING_INPUT_BYTES_MIN"] = "0"
        command = Ringhaul(env, folder)
        with running_worker(command):
            for first in range(0, len(given), AT_ONCE):
                place = folder / f"from{first}"
                place.mkdir()
                with raw_session(node.session) as raw, fresh_keyspace(node.session) as keyspace:
                    proof = Proof(node, raw, command, keyspace, place)
                    proof.prove(given[first : first + AT_ONCE])


def main(arguments: list[str] | None = None) -> int:
    """Prove on the versions named, or all that read such files; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions.sstables", description=__doc__)
    parser.add_argument("version", nargs="*", help="such as 4.1; default: 4.0, 4.1 and 5.0")
    parser.add_argument("--cache", type=Path, default=user_cache_dir() / "versions")
    parser.add_argument("--tables", type=int, default=TABLES, help=f"default {TABLES}")
    options = parser.parse_args(arguments)
    failed = False
    for version in VERSIONS:
        if version.line < (4, 0):
            continue
        if options.version and not version.number.startswith(tuple(options.version)):
            continue
        try:
            result = prove(version, options.cache, options.tables)
        except Exception:  # the other versions are tested all the same
            traceback.print_exc()
            result, failed = "FAILED", True
        print(f"Cassandra {version.number}: {result}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
