"""Three replicas: nodes die, hang and come back, connections are cut, and the load goes on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from tests.acceptance.command import wait_until
from tests.chaos.conftest import StartWorker
from tests.chaos.rig import Looker, Rig, check_exact, kill, write_source
from tests.services import ProxiedRing, connected, fresh_keyspace

RATE_ROWS_S = 1000
RECORDS = 60_000
PAUSE_S = 20.0
REQUEST_TIMEOUT_S = 4.0
CUTS = 3
#: What the faults may cost in all, beside what the rate allows. 29 s were measured on two cores
#: shared with three nodes and other work; the rate limit does not make up for time lost.
LOST_S_MAX = 45.0


@pytest.fixture
def endpoints(proxied_ring: ProxiedRing) -> Endpoints:
    """The ring, for `fleet`."""
    return proxied_ring.stack.endpoints()


@pytest.fixture
def cassandra_session(endpoints: Endpoints) -> Iterator[Session]:
    """Reads what a quorum holds, which is what the load promised."""
    with connected(endpoints, ConsistencyLevel.QUORUM) as session:
        yield session


@pytest.fixture
def keyspace(cassandra_session: Session) -> Iterator[str]:
    with fresh_keyspace(cassandra_session, replication_factor=3) as name:
        yield name


def test_nodes_and_connections_that_fail_cost_time_only(
    fleet: Rig,
    looker: Looker,
    proxied_ring: ProxiedRing,
    start_worker: StartWorker,
    tmp_path: Path,
) -> None:
    """
    1. Two processes load into three replicas, each row written at LOCAL_QUORUM.
    2. A node is killed, and started again; the load goes on meanwhile.
    3. Another hangs for 20 s; the load goes on meanwhile.
    4. The connections to the third are cut in the middle of an answer, three times.
    5. No row is missing, rejected or counted twice, and little time was lost.
    """
    start_worker(2, RINGHAUL_CLUSTER_REQUEST_TIMEOUT_S=f"{REQUEST_TIMEOUT_S:g}")
    source = write_source(tmp_path / "in.csv", RECORDS, bad_every=None)
    options = ("-t", fleet.table, "--unit-size", "6 KiB", "--rate", RATE_ROWS_S)
    ring, proxy = proxied_ring
    hangs, dies, _ = (node.pid for node in ring.nodes())
    assert hangs is not None and dies is not None

    with fleet.started("load", source.path, *options) as load:
        looker.wait_done(5)
        kill(dies)
        wait_until(lambda: not ring.nodes()[1].runs(), "the end of the node")
        units_done = looker.status().done
        assert ring.up(any_port=True).nodes_started == 1
        assert looker.status().done > units_done + 5

        os.kill(hangs, signal.SIGSTOP)
        try:
            units_done = looker.status().done
            time.sleep(PAUSE_S)
            assert looker.status().done > units_done + 5
        finally:
            os.kill(hangs, signal.SIGCONT)

        for _ in range(CUTS):
            cut = proxy.cut
            proxy.cut_answers()
            wait_until(lambda cut=cut: proxy.cut > cut, "a connection to be cut")
            looker.wait_done(looker.status().done + 1)
        summary = load.finish(0)

    check_exact(fleet, looker, summary, source)
    assert summary["retries"] > 0
    assert summary["window_max"] > 0, "the pipeline did it"
    lost_s = summary["elapsed_s"] - RECORDS / RATE_ROWS_S
    assert lost_s < LOST_S_MAX, f"{lost_s:.1f} s lost"
