"""A fleet with workers that a test may kill, and an embedded command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from producer.local.valkey import EmbeddedValkey
from ringhaul.ledger.workers import Workers
from tests.acceptance.command import Process, Ringhaul, wait_until
from tests.chaos.rig import TIMING, LedgerView, Rig
from tests.services import running_valkey

#: start_worker(slots, *options, **environment) -> the worker's parent process, once it is up.
StartWorker = Callable[..., Process]


@pytest.fixture
def valkey() -> Iterator[EmbeddedValkey]:
    """A broker for this test alone, which may kill it."""
    with running_valkey() as server:
        yield server


@pytest.fixture
def cluster_env(endpoints: Endpoints, tmp_path: Path) -> dict[str, str]:
    return TIMING | {
        "RINGHAUL_CLUSTER_CONTACT_POINTS": ",".join(endpoints.contact_points),
        "RINGHAUL_CLUSTER_PORT": str(endpoints.port),
        "RINGHAUL_STATE_DIR": str(tmp_path / "state"),
    }


@pytest.fixture
def ledger_view(valkey: EmbeddedValkey) -> Iterator[LedgerView]:
    """The ledger in the fleet's broker."""
    watching = LedgerView(valkey.url)
    yield watching
    watching.close()


@pytest.fixture
def fleet(
    valkey: EmbeddedValkey,
    cluster_env: dict[str, str],
    cassandra_session: Session,
    keyspace: str,
    tmp_path: Path,
) -> Rig:
    """A command with the broker; `start_worker` starts its workers."""
    env = cluster_env | {"RINGHAUL_BROKER_URL": valkey.url}
    return Rig(Ringhaul(env, tmp_path), cassandra_session, keyspace, tmp_path)


@pytest.fixture
def embedded(
    cluster_env: dict[str, str], cassandra_session: Session, keyspace: str, tmp_path: Path
) -> Rig:
    """A command without a broker in its settings."""
    return Rig(Ringhaul(cluster_env, tmp_path), cassandra_session, keyspace, tmp_path)


@pytest.fixture
def own_valkey(embedded: Rig) -> EmbeddedValkey:
    """The Valkey that `embedded` starts, for inspection only."""
    return EmbeddedValkey(embedded.folder / "state" / "valkey")


@pytest.fixture
def start_worker(fleet: Rig, ledger_view: LedgerView) -> Iterator[StartWorker]:
    """A function that starts workers of the fleet, each with a log file in the test's folder."""
    with ExitStack() as stack:
        started: list[Process] = []

        def start(slots: int = 2, *options: str, **env: str) -> Process:
            log = fleet.folder / f"worker-{len(started)}.log"
            name = f"--hostname=w{len(started)}@%h"
            process = stack.enter_context(
                fleet.command.started("worker", "-c", slots, name, *options, log=log, **env)
            )
            started.append(process)

            def is_up() -> bool:
                assert process.poll() is None, log.read_text()
                alive = Workers(ledger_view.ledger.caller).alive()
                return any(worker.pid == process.pid for worker in alive)

            wait_until(is_up, f"the worker; see {log}")
            return process

        yield start
