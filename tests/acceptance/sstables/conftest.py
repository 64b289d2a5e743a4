"""The shared node with its tools, a keyspace on it, and commands that load SSTables into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.command import Ringhaul
from tests.acceptance.conftest import cluster_env, fleet_settings
from tests.acceptance.running import running_worker
from tests.servers import SharedNode
from tests.services import fresh_keyspace, running_valkey
from tests.sstable_tools import Node, opened

#: Blocks so small that an SSTable is made of several; inputs of any size are streamed.
SMALL = {"RINGHAUL_LOAD_BLOCK_BYTES": "65536", "RINGHAUL_STREAMING_INPUT_BYTES_MIN": "0"}


@pytest.fixture(scope="package")
def node(shared_node: SharedNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with opened(shared_node, tmp_path_factory.mktemp("tools")) as found:
        yield found


@pytest.fixture
def keyspace(node: Node) -> Iterator[str]:
    with fresh_keyspace(node.session) as name:
        yield name


@pytest.fixture(scope="package")
def worker_env(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The settings of a worker with two processes in front of the node."""
    folder = tmp_path_factory.mktemp("sstables-worker")
    with running_valkey() as valkey:
        env = fleet_settings(node.endpoints, folder / "state", valkey.url) | SMALL
        with running_worker(Ringhaul(env, folder)):
            yield env


@pytest.fixture
def ringhaul(worker_env: dict[str, str], tmp_path: Path) -> Ringhaul:
    """The command with the running worker, so that a load starts quickly."""
    return Ringhaul(worker_env, tmp_path)


@pytest.fixture
def embedded(node: Node, tmp_path: Path) -> Ringhaul:
    """The command without a broker, for tests with settings that its workers must have, too."""
    return Ringhaul(cluster_env(node.endpoints, tmp_path / "state") | SMALL, tmp_path)
