"""Cassandra stops answering temporarily."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints, Stack
from tests.chaos.conftest import StartWorker
from tests.chaos.rig import LedgerView, Rig, check_exact, write_source
from tests.chaos.test_unload_faults import check_unloaded, fill, unloading
from tests.servers import SharedNode
from tests.services import connected

PAUSE_S = 8.0


@pytest.fixture
def stack(strict_node: SharedNode) -> Stack:
    """A node that no other test uses meanwhile."""
    return strict_node.stack


@pytest.fixture
def endpoints(stack: Stack) -> Endpoints:
    return stack.endpoints()


@pytest.fixture
def cassandra_session(endpoints: Endpoints) -> Iterator[Session]:
    with connected(endpoints) as session:
        yield session


@pytest.mark.parametrize("strategy", ["pipeline", "token-batch"])
def test_a_node_that_hangs_for_a_while_costs_only_retries(
    fleet: Rig,
    ledger_view: LedgerView,
    stack: Stack,
    start_worker: StartWorker,
    tmp_path: Path,
    strategy: str,
) -> None:
    """
    1. A worker loads; a request times out after 2 s.
    2. The only node stops for 8 s, and continues.
    3. Requests without an answer were sent again; no row is missing.
    """
    start_worker(2, RINGHAUL_CLUSTER_REQUEST_TIMEOUT_S="2", RINGHAUL_WORKER_LEASE_S="60")
    source = write_source(tmp_path / "in.csv", 6000)
    (node,) = stack.nodes()
    assert node.pid is not None
    with fleet.load(source, RINGHAUL_LOAD_STRATEGY=strategy) as load:
        ledger_view.child_at_work()
        os.kill(node.pid, signal.SIGSTOP)
        try:
            time.sleep(PAUSE_S)
            assert not ledger_view.status().finished
        finally:
            os.kill(node.pid, signal.SIGCONT)
        summary = load.finish(1)
    check_exact(fleet, ledger_view, summary, source)
    assert summary["retries"] > 0


def test_an_unload_survives_a_pause_of_the_node(
    fleet: Rig,
    ledger_view: LedgerView,
    cassandra_session: Session,
    stack: Stack,
    start_worker: StartWorker,
    tmp_path: Path,
) -> None:
    """The only node hangs: units wait for it, and keep their checkpoints."""
    fill(cassandra_session, fleet.table)
    out = tmp_path / "out"
    start_worker(2, RINGHAUL_CLUSTER_REQUEST_TIMEOUT_S="2", RINGHAUL_WORKER_LEASE_S="60")
    (node,) = stack.nodes()
    assert node.pid is not None
    with unloading(fleet, out) as load:
        ledger_view.child_at_work(units_before=1)
        os.kill(node.pid, signal.SIGSTOP)
        try:
            time.sleep(6)
            assert not ledger_view.status().finished
        finally:
            os.kill(node.pid, signal.SIGCONT)
        summary = load.finish(0)
    check_unloaded(out, ledger_view, summary)
