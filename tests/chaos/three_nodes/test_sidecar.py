"""Three nodes import through one Sidecar: each has the rows that it owns and no others."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from producer.local.stack import Endpoints
from ringhaul.imports.command import find_nodetool
from tests.chaos.rig import Rig, check_table, write_source
from tests.chaos.three_nodes.replicas import leave_files_alone, owned, rows_of
from tests.services import ProxiedRing, user_cache_dir
from tests.sidecar import Sidecar, running_sidecar

RECORDS = 4000
REPLICAS = 2


@pytest.fixture
def replicas() -> int:
    return REPLICAS


@pytest.fixture
def sidecar(proxied_ring: ProxiedRing, endpoints: Endpoints, tmp_path: Path) -> Iterator[Sidecar]:
    """A Sidecar of all three nodes, which knows by the header `Host` which is meant."""
    ports = proxied_ring.stack.jmx_ports

    def importer(
        host: str, keyspace: str, table: str, folder: Path, options: dict[str, str]
    ) -> str:
        place = ("-h", "127.0.0.1", "-p", str(ports[host]))
        words = [*find_nodetool(user_cache_dir()), *place, "import", keyspace, table, str(folder)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else done.stdout + done.stderr

    with running_sidecar(Sidecar(tmp_path / "staging", importer, set(ports))) as found:
        yield found


def test_each_node_gets_the_rows_that_it_owns_and_no_others(
    embedded: Rig, proxied_ring: ProxiedRing, sidecar: Sidecar, tmp_path: Path
) -> None:
    source = write_source(tmp_path / "in.csv", RECORDS)
    leave_files_alone(embedded)
    env = {
        "RINGHAUL_SIDECAR_HOST": "127.0.0.1",
        "RINGHAUL_SIDECAR_PORT": str(sidecar.port),
        "RINGHAUL_SIDECAR_INPUT_BYTES_MIN": "0",
        "RINGHAUL_SSTABLES_SORT_BYTES": "8 KiB",
    }
    options = ["-t", embedded.table, "--via", "sidecar", "-c", "1"]
    with embedded.started("load", source.path, *options, **env) as load:
        summary = load.finish(1)

    assert (summary["rows"], summary["missed"]) == (len(source.good), 0)
    assert len(summary["streamed_bytes"]) == 3
    held = 0
    for node in proxied_ring.stack.nodes():
        found = rows_of(node, embedded.table, summary["first_timestamp_us"])
        assert found == owned(embedded, source, node)
        held += len(found)
    assert held == REPLICAS * len(source.good)
    check_table(embedded, summary, source.good)
    assert sidecar.uploads() == []
