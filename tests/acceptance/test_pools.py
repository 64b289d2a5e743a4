"""Loads, reads and statements under each pool of `ringhaul worker`; other pools are refused."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from producer.local.valkey import EmbeddedValkey
from tests.acceptance.command import Ringhaul
from tests.acceptance.conftest import fleet_settings
from tests.acceptance.oracle import assert_table, create_table
from tests.acceptance.running import running_worker

ROWS = 6000
EXPECTED = [(number, f"value {number}") for number in range(ROWS)]


@pytest.fixture(scope="module", params=["prefork", "solo"])
def crew(
    request: pytest.FixtureRequest,
    endpoints: Endpoints,
    fleet_broker: EmbeddedValkey,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Ringhaul]:
    """`ringhaul` with one worker of a pool, on a broker database to itself."""
    folder = tmp_path_factory.mktemp(request.param)
    broker = f"{fleet_broker.url.rpartition('/')[0]}/7"
    ringhaul = Ringhaul(fleet_settings(endpoints, folder / "state", broker), folder)
    log = folder / "worker.log"
    with (
        redis.Redis.from_url(broker) as client,
        running_worker(ringhaul, "--pool", request.param, slots=1) as process,
    ):
        yield ringhaul
        process.terminate()
        assert process.wait(40) == 0, log.read_text()
        assert "Traceback" not in log.read_text()
        client.flushdb()


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    return create_table(cassandra_session, keyspace, "id int PRIMARY KEY, v text")


def test_load_unload_query_and_lookup(
    crew: Ringhaul, cassandra_session: Session, table: str, tmp_path: Path
) -> None:
    # Given a file of several units
    path = tmp_path / "in.csv"
    path.write_text("id,v\n" + "".join(f"{number},{text}\n" for number, text in EXPECTED))
    # When it is loaded, then every row is in the table
    done = crew.run("load", path, "-t", table, "--unit-size", "20KiB", "--json")
    assert done.code == 0, done.err
    assert (done.summary["rows"], done.summary["units"]) == (ROWS, done.summary["units_done"])
    assert_table(cassandra_session, table, "id, v", EXPECTED)
    # When it is unloaded, then every row is in the files
    done = crew.run("unload", "-t", table, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    found = [row for part in (tmp_path / "out").glob("*.csv") for row in records_of(part)]
    assert sorted(found) == EXPECTED
    # When it is aggregated or looked up, then the answers are right
    done = crew.run(
        "query", f"SELECT count(*) AS n, max(id) AS last FROM {table}", "--format", "csv"
    )
    assert (done.code, done.out.split()) == (0, ["n,last", f"{ROWS},{ROWS - 1}"])
    keys = tmp_path / "keys.csv"
    keys.write_text("id\n17\n4000\n")
    done = crew.run("lookup", "-t", table, "--keys", keys, "-o", tmp_path / "found")
    assert done.code == 0, done.err
    found = [row for part in (tmp_path / "found").glob("*.csv") for row in records_of(part)]
    assert sorted(found) == [EXPECTED[17], EXPECTED[4000]]


def records_of(path: Path) -> list[tuple[int, str]]:
    with path.open(newline="") as file:
        return [(int(record["id"]), record["v"]) for record in csv.DictReader(file)]


@pytest.mark.parametrize(
    ("pool", "why"),
    [
        ("threads", "a thread cannot be killed"),
        ("gevent", "converting rows never gives way"),
        ("eventlet", "converting rows never gives way"),
        ("custom", "it is not known how units would run there"),
    ],
)
def test_a_pool_that_cannot_run_units_is_refused(fleet: Ringhaul, pool: str, why: str) -> None:
    done = fleet.run("worker", "--pool", pool)
    assert done.code == 2
    assert f"--pool {pool}: {why}" in " ".join(done.err.replace("│", " ").split())
    assert "Use prefork" in done.err


def test_celery_itself_refuses_it_too(fleet: Ringhaul) -> None:
    command = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "-P", "threads"]
    done = subprocess.run(command, env=fleet.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "--pool threads: a thread cannot be killed" in done.stderr
    assert "Traceback" not in done.stderr
