"""Broken connections of a pool process are replaced for later requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import NoHostAvailable, Session
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.connection import ConnectionShutdown

from config.settings import load_settings
from producer.local.stack import Endpoints
from ringhaul.cql.decode import PageDecoder
from ringhaul.cql.types import parse_type
from ringhaul.load.statement import insert_statement
from ringhaul.scan.options import ScanOptions
from ringhaul.scan.ranges import FULL_RING
from ringhaul.scan.scan import RangeScan
from tasks.child.process import Child
from tasks.child.scan import scan_target
from tests.acceptance.command import wait_until
from tests.integration.load.conftest import make_table, read_table, run_file
from tests.proxy import Proxy, proxied

ROWS = 300
#: A request that the driver registers on a connection while that breaks is answered by a time-out.
LOST_S = 8.0


@pytest.fixture
def cut_off(endpoints: Endpoints, child: Child) -> Iterator[tuple[Child, Proxy]]:
    """A child with the settings of `child`, whose connection to the node can be cut."""
    with proxied((endpoints.contact_points[0], endpoints.port)) as (proxy, port):
        found = Child(load_settings({"cluster.port": port}).settings)
        yield found, proxy
        found.close()
        found.ledger.caller.client.close()


def test_a_reading_process_s_session_recovers(
    cut_off: tuple[Child, Proxy], cassandra_session: Session, keyspace: str
) -> None:
    """
    1. A process reads over the connections of its session.
    2. They break. The next unit starts, and soon the session answers again.
    3. They break again: the running unit's pages come over new ones.
    """
    child, proxy = cut_off
    make_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    insert = cassandra_session.prepare(f"INSERT INTO {keyspace}.t (id, v) VALUES (?, 'x')")
    execute_concurrent_with_args(cassandra_session, insert, [(i,) for i in range(ROWS)])
    child.begin_unit()
    target = scan_target(
        child, f"SELECT id FROM {keyspace}.t WHERE token(id) > ? AND token(id) <= ?", keyspace
    )

    proxy.cut_answers()
    with pytest.raises(ConnectionShutdown):
        child.session().execute("SELECT * FROM system_schema.columns")
    child.begin_unit()
    wait_until(lambda: answers(child), "the session to answer again", timeout_s=20)

    cut = proxy.cut
    proxy.cut_answers()
    options = ScanOptions(consistency=ConsistencyLevel.ONE, request_timeout_s=200.0)
    decoder = PageDecoder(["id"], [parse_type("int")])
    scan = RangeScan(target, [FULL_RING], decoder, options)
    found = [number for batch in scan.batches() for number in batch["id"].to_pylist()]
    assert sorted(found) == list(range(ROWS))
    assert proxy.cut > cut and scan.stats.retries > 0


def answers(child: Child) -> bool:
    try:
        return bool(list(child.session().execute("SELECT release_version FROM system.local")))
    except NoHostAvailable:
        return False


def test_a_load_over_the_drivers_connections_survives_a_break(
    cut_off: tuple[Child, Proxy], cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    # Given a process whose session writes
    child, proxy = cut_off
    table = make_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")
    path = tmp_path / "in.csv"
    path.write_text("".join(f"{i},x\n" for i in range(ROWS)))
    child.begin_unit()
    scan_target(child, f"SELECT id FROM {keyspace}.t WHERE id = ?", keyspace)
    prepared = child.prepare(insert_statement(table, ["id", "v"], None))

    # When its connection breaks while the unit writes
    proxy.cut_answers()
    outcome = run_file(
        *(child.session(), table, path, ["id", "v"]),
        strategy="token-batch",
        request_timeout_s=LOST_S,
        retries_max=5,
        prepared=prepared,
    )

    # Then the same unit writes the rest
    assert proxy.cut and outcome.retries
    assert (outcome.written, outcome.rejected) == (ROWS, 0)
    assert sorted(read_table(cassandra_session, keyspace, "id")) == [(i,) for i in range(ROWS)]
