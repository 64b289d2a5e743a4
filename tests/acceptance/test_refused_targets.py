"""Targets and options that cannot be used are refused before a job exists.

Exit code 2 if the command line or a setting is wrong, 4 if the cluster or the broker fails.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from producer.local.valkey import EmbeddedValkey
from tests.acceptance.command import Ringhaul
from tests.acceptance.refusals import COLUMNS, nothing_started
from tests.refusals import assert_refused, assert_usage
from tests.services import fresh_keyspace


@pytest.fixture(scope="module")
def keyspace(cassandra_session: Session) -> Iterator[str]:
    """A keyspace with the table `orders`, which the tests of this file leave empty."""
    with fresh_keyspace(cassandra_session) as name:
        cassandra_session.execute(f"CREATE TABLE {name}.orders ({COLUMNS})")
        cassandra_session.execute(f"CREATE TABLE {name}.sets (id int PRIMARY KEY, tags set<text>)")
        cassandra_session.execute(f"CREATE TABLE {name}.hits (id int PRIMARY KEY, n counter)")
        yield name


@pytest.fixture(autouse=True)
def nothing_written(
    cassandra_session: Session, keyspace: str, fleet_broker: EmbeddedValkey
) -> Iterator[None]:
    """Assert for each test that it creates no job and writes no row."""
    with nothing_started(cassandra_session, f"{keyspace}.orders", fleet_broker.url):
        yield


@pytest.fixture
def source(fleet: Ringhaul) -> Path:
    path = fleet.cwd / "orders.csv"
    path.write_text("id,name,total\n1,a,10\n")
    return path


def test_a_missing_keyspace(fleet: Ringhaul, source: Path, keyspace: str) -> None:
    near = keyspace[:-1]
    finished = fleet.run("load", source, "-k", near, "-t", "orders")
    assert_refused(finished, 4, f"no keyspace {near!r} in this cluster; did you mean {keyspace!r}?")
    finished = fleet.run("load", source, "-k", "zzz", "-t", "orders")
    assert_refused(
        finished,
        4,
        "no keyspace 'zzz' in this cluster; this makes it (cqlsh, or `ringhaul local cql` for the "
        "local stack): CREATE KEYSPACE zzz WITH replication = {'class': 'NetworkTopologyStrategy', "
        "'datacenter1': 1};",
    )


def test_a_cluster_that_does_not_answer(fleet: Ringhaul, source: Path, keyspace: str) -> None:
    table = f"{keyspace}.orders"
    finished = fleet.run("load", source, "-t", table, "--contact-points", "127.0.0.1", "--port", 1)
    assert_refused(
        finished,
        4,
        "no node answers at 127.0.0.1:1: Connection refused. Is it the right address "
        "(--contact-points, cluster.contact_points) and is the node up? "
        "`ringhaul local up` starts one to try with",
    )


def test_a_host_name_that_does_not_exist(
    fleet: Ringhaul, source: Path, keyspace: str, endpoints: Endpoints
) -> None:
    table = f"{keyspace}.orders"
    finished = fleet.run("load", source, "-t", table, "--contact-points", "no-host.invalid")
    assert_refused(
        finished,
        4,
        f"no host name in no-host.invalid:{endpoints.port} can be resolved; check the spelling "
        "(--contact-points, cluster.contact_points)",
    )


def test_a_missing_data_centre(fleet: Ringhaul, source: Path, keyspace: str) -> None:
    finished = fleet.run("load", source, "-t", f"{keyspace}.orders", "--local-dc", "dc9")
    assert_refused(
        finished,
        4,
        "no data centre 'dc9' in this cluster; it has datacenter1 (--local-dc, cluster.local_dc)",
    )


def test_a_broker_that_does_not_answer(fleet: Ringhaul, source: Path, keyspace: str) -> None:
    started = time.monotonic()
    finished = fleet.run(
        "load", source, "-t", f"{keyspace}.orders", "--broker", "redis://127.0.0.1:1"
    )
    assert_refused(
        finished,
        4,
        "Redis at 127.0.0.1:1 did not serve for 5 s: Error 111 connecting to 127.0.0.1:1. "
        "Connection refused. Is the address right (broker.url)? "
        "Jobs continue when it is back.",
    )
    assert time.monotonic() - started < 30


def test_a_broker_that_wants_another_password(
    fleet: Ringhaul, source: Path, keyspace: str, fleet_broker: EmbeddedValkey
) -> None:
    (fleet.cwd / "password").write_text("sesame\n")
    url = f"redis://127.0.0.1:{fleet_broker.port}/0"
    finished = fleet.run(
        *("load", source, "-t", f"{keyspace}.orders"),
        RINGHAUL_BROKER_URL=url,
        RINGHAUL_BROKER_PASSWORD_FILE="password",
    )
    assert_refused(
        finished,
        4,
        f"Redis at 127.0.0.1:{fleet_broker.port} refuses: invalid username-password pair or user "
        "is disabled. Check the user, password and access rules of the broker's settings.",
    )


def test_missing_or_invalid_tls_files(fleet: Ringhaul, source: Path, keyspace: str) -> None:
    load = ("load", source, "-t", f"{keyspace}.orders")
    finished = fleet.run(*load, RINGHAUL_CLUSTER_TLS="true", RINGHAUL_CLUSTER_TLS_CA="ca.pem")
    assert_refused(finished, 2, f"cluster.tls_ca: no such file {fleet.cwd}/ca.pem")
    (fleet.cwd / "ca.pem").write_text("no certificate\n")
    finished = fleet.run(*load, RINGHAUL_CLUSTER_TLS="true", RINGHAUL_CLUSTER_TLS_CA="ca.pem")
    message = f"error: cluster.tls_ca: {fleet.cwd}/ca.pem cannot be used: [X509: NO_CERTIFICATE"
    assert finished.err.startswith(message)
    assert (finished.code, finished.out) == (2, "")


def test_detaching_from_workers_that_end_with_the_command(
    embedded: Ringhaul, keyspace: str
) -> None:
    (embedded.cwd / "in.csv").write_text("id,name,total\n1,a,10\n")
    finished = embedded.run("load", "in.csv", "-t", f"{keyspace}.orders", "--detach")
    assert_refused(
        finished,
        2,
        "--detach needs workers that stay: configure a broker and start some",
    )
    assert embedded.run("status", "--json").out == "[]\n", "the refused command left a job"


USAGE = {
    "no source": (["load", "-t", "k.t"], "Missing argument 'SOURCE...'."),
    "no table": (["load", "a.csv"], "Missing option '-t' / '--table'."),
    "no such option": (["load", "a.csv", "-t", "k.t", "--tll", "1"], "No such option '--tll'."),
    "fewer than no rows": (
        ["load", "a.csv", "-t", "k.t", "--max-rows", "-1"],
        "Invalid value for '--max-rows': -1 is not in the range x>=0.",
    ),
    "no such strategy": (
        ["load", "a.csv", "-t", "k.t", "--strategy", "fast"],
        "Invalid value for '--strategy': 'fast' is not one of 'pipeline', 'single', 'token-batch'.",
    ),
    "no such command": (["lod"], "No such command 'lod'; did you mean 'load'?"),
    "nothing like a command": (["xyz"], "No such command 'xyz'."),
    "no job": (["cancel"], "Missing argument 'JOB'."),
}


@pytest.mark.parametrize(("args", "message"), USAGE.values(), ids=USAGE)
def test_a_command_line_that_cannot_be_read(fleet: Ringhaul, args: list[str], message: str) -> None:
    finished = fleet.run(*args)
    lines = finished.err.splitlines()
    # click adds a suggestion
    error = next(line for line in lines if line.startswith("Error: "))
    assert error.startswith(f"Error: {message}")
    assert_usage(finished, error.removeprefix("Error: "))


@pytest.mark.parametrize("command", ["status", "errors", "cancel", "resume"])
def test_an_unknown_job(fleet: Ringhaul, command: str) -> None:
    finished = fleet.run(command, "ld-zzzzzz")
    assert_refused(
        finished,
        2,
        "there is no job ld-zzzzzz: `ringhaul status` lists the jobs; one that ended more than "
        "7 days ago is forgotten",
    )
