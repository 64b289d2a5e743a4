"""A cluster that is reached by a secure connect bundle only: through its SNI proxy."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from ringhaul.cluster.connect import close_session, open_session
from tasks.cluster_settings import cluster_config
from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_report, assert_table, create_table
from tests.integration.cluster.conftest import GuardedNode
from tests.refusals import assert_refused
from tests.secure_bundle import Managed, managed_cluster
from tests.services import connected, fresh_keyspace

USER, PASSWORD = "cassandra", "cassandra"
#: In the bundle. The node's own default password counts as no secret.
TOKEN_USER, TOKEN = "loader", "AstraCS:open:sesame"
ROWS = [(i, f"v{i}" * (1 if i % 100 else 2_000)) for i in range(3000)]
FILE = "id,v\n" + "".join(f"{i},{v}\n" for i, v in ROWS)


@pytest.fixture(scope="module")
def session(login: Endpoints) -> Iterator[Session]:
    """A session beside the proxy, with a role for the bundle's user."""
    with connected(login) as found:
        found.execute(
            f"CREATE ROLE {TOKEN_USER} WITH PASSWORD = '{TOKEN}' AND LOGIN = true"
            " AND SUPERUSER = true"
        )
        yield found


@pytest.fixture(scope="module")
def table(session: Session) -> Iterator[str]:
    with fresh_keyspace(session) as keyspace:
        yield create_table(session, keyspace, "id int PRIMARY KEY, v text")


@pytest.fixture(scope="module")
def managed(
    guarded: GuardedNode, session: Session, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Managed]:
    (host,) = session.cluster.metadata.all_hosts()
    nodes = {str(host.host_id): ("127.0.0.1", guarded.endpoints.port)}
    folder = tmp_path_factory.mktemp("managed")
    with managed_cluster(folder, nodes, username=TOKEN_USER, password=TOKEN) as found:
        yield found


@pytest.fixture
def ringhaul(managed: Managed, tmp_path: Path) -> Ringhaul:
    """The command with the bundle and nothing else."""
    (tmp_path / "rows.csv").write_text(FILE)
    env = {
        "RINGHAUL_CLUSTER_SECURE_CONNECT_BUNDLE": str(managed.bundle),
        "RINGHAUL_STATE_DIR": str(tmp_path / "state"),
        "RINGHAUL_CLUSTER_CONNECT_TIMEOUT_S": "5",
        "RINGHAUL_WORKER_CONCURRENCY": "1",
    }
    return Ringhaul(env, tmp_path)


def test_load_unload_and_count_through_the_proxy(
    ringhaul: Ringhaul, managed: Managed, session: Session, table: str
) -> None:
    # Given the bundle as a flag, which workers learn of
    ringhaul.env.pop("RINGHAUL_CLUSTER_SECURE_CONNECT_BUNDLE")
    way = ("--secure-connect-bundle", managed.bundle)
    # When rows are loaded, through the data plane
    loaded = ringhaul.run(
        "load", "rows.csv", "-t", table, *way, "--json", "--report", "report.html"
    )
    summary = assert_report(loaded, rows=len(ROWS))
    assert summary["window_max"] > 0, "the pipeline did it, not the driver"
    # Then all of them are in the table
    assert_table(session, table, "id, v", ROWS)
    # And come out of it again, through the proxy
    unloaded = ringhaul.run("unload", "-t", table, *way, "-o", "out.csv", "--single-file")
    assert unloaded.code == 0, unloaded
    assert sorted((ringhaul.cwd / "out.csv").read_text().splitlines()) == sorted(FILE.splitlines())
    counted = ringhaul.run("count", "-t", table, *way, "--format", "csv")
    assert counted.out.split() == ["count", str(len(ROWS))]
    # And lookups find them
    (ringhaul.cwd / "keys.csv").write_text("id\n7\n100\n")
    found = ringhaul.run("lookup", "-t", table, "--keys", "keys.csv", *way, "-o", "-")
    assert sorted(found.out.splitlines()) == sorted(
        ["id,v", *(f"{i},{ROWS[i][1]}" for i in (7, 100))]
    )
    assert managed.proxy.connections.total() > 4
    assert_no_secret(ringhaul.cwd, managed, loaded.out + loaded.err + unloaded.err + counted.out)


def assert_no_secret(folder: Path, managed: Managed, shown: str) -> None:
    """Assert that neither the outputs nor any file (logs, the ledger, reports) hold one."""
    secrets = [TOKEN.encode(), *managed.members["key"].splitlines()[1:-1]]
    held = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert any(path.suffix == ".html" for path in held)
    assert any("valkey" in str(path) or "appendonly" in str(path) for path in held), "the ledger"
    for secret in secrets:
        assert secret not in shown.encode()
        assert [path for path, data in held.items() if secret in data] == []


def test_the_settings_user_wins_over_the_bundles(
    managed: Managed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from config.settings import load_settings

    (tmp_path / "password").write_text(PASSWORD)
    monkeypatch.setenv("RINGHAUL_CLUSTER_SECURE_CONNECT_BUNDLE", str(managed.bundle))
    for user in (TOKEN_USER, USER):
        opened = open_session(cluster_config(load_settings().settings))
        seen = {row.username for row in opened.execute("SELECT * FROM system_views.clients")}
        assert user in seen
        assert close_session(opened, 20)
        monkeypatch.setenv("RINGHAUL_CLUSTER_USER", USER)
        monkeypatch.setenv("RINGHAUL_CLUSTER_PASSWORD_FILE", str(tmp_path / "password"))


def test_bundles_that_cannot_be_used(ringhaul: Ringhaul, managed: Managed) -> None:
    name = "cluster.secure_connect_bundle"
    # A file that is missing, and one that is not a zip file
    nowhere = ringhaul.cwd / "nowhere.zip"
    run = ringhaul.run
    load = ("load", "rows.csv", "-t", "s.t", "--secure-connect-bundle")
    assert_refused(run(*load, "nowhere.zip"), 2, f"{name}: no such file {nowhere}")
    rows = ringhaul.cwd / "rows.csv"
    assert_refused(
        run(*load, "rows.csv"),
        2,
        f"{name}: {rows} is not a secure connect bundle: it is not a zip file (File is not a zip "
        "file). If it should be one, download it again from the console of the service",
    )
    # One of another cluster, in the eyes of this cluster
    key, cert = managed.stranger.issue("a stranger")
    other = managed.write(ringhaul.cwd / "other.zip", key=key.encode(), cert=cert.encode())
    refused = run(*load, other)
    config = json.loads(managed.members["config.json"])
    begin = f"error: the metadata service at 127.0.0.1:{config['port']} ({name} {other}) ended the"
    assert refused.err.startswith(begin)
    assert (refused.code, refused.err.count("\n")) == (4, 1)
    # and in the eyes of the client
    other = managed.write(other, ca=managed.stranger.certificate.encode())
    refused = run(*load, other)
    assert refused.err.endswith("is not trusted. Is it the bundle of this cluster?\n")
    assert refused.code == 4
    # Another password, which no message shows
    other = managed.write(
        other, config=json.dumps(config | {"password": "sesame, closed"}).encode()
    )
    assert_refused(
        run(*load, other),
        4,
        f"the cluster at the proxy 127.0.0.1:{managed.proxy.port} refused user '{TOKEN_USER}': "
        f"Provided username {TOKEN_USER} and/or password are incorrect. Check the user and the "
        "password",
    )
    # A service that cannot be reached
    other = managed.write(other, config=json.dumps(config | {"port": 1}).encode())
    refused = run(*load, other)
    assert "does not answer: [Errno 111] Connection refused. Is the database active" in refused.err
    assert refused.code == 4


def test_a_node_that_the_proxy_does_not_know(ringhaul: Ringhaul, managed: Managed) -> None:
    before = managed.answer
    contact = json.loads(before[1])["contact_info"] | {"contact_points": [str(uuid.uuid4())]}
    managed.answer = (200, json.dumps({"contact_info": contact}).encode())
    try:
        refused = ringhaul.run("load", "rows.csv", "-t", "s.t")
    finally:
        managed.answer = before
    assert refused.code == 4
    assert refused.err == (
        f"error: the cluster at the proxy 127.0.0.1:{managed.proxy.port} ended the TLS handshake: "
        f"tlsv1 unrecognized name. Is {managed.bundle} the bundle of this cluster, and the newest "
        "one?\n"
    )


def test_a_proxy_that_is_not_there(ringhaul: Ringhaul, managed: Managed) -> None:
    before = managed.answer
    contact = json.loads(before[1])["contact_info"] | {"sni_proxy_address": "127.0.0.1:1"}
    managed.answer = (200, json.dumps({"contact_info": contact}).encode())
    try:
        refused = ringhaul.run("load", "rows.csv", "-t", "s.t")
    finally:
        managed.answer = before
    assert refused.code == 4
    assert refused.err == (
        "error: no node answers through the proxy 127.0.0.1:1: Connection refused. Is the database "
        f"active, and the way to it open? (cluster.secure_connect_bundle {managed.bundle})\n"
    )


def test_what_the_proxy_does_not_lead_to(ringhaul: Ringhaul, table: str) -> None:
    assert_refused(
        ringhaul.run("load", "rows.csv", "-t", table, "--via", "streaming"),
        2,
        "--via streaming needs the nodes' storage ports, and the proxy of "
        "cluster.secure_connect_bundle leads to none of them: leave the option out",
    )


def test_both_ways_at_once_are_refused(ringhaul: Ringhaul, managed: Managed) -> None:
    refused = ringhaul.run("count", "-t", "s.t", "--contact-points", "db1",
        "--secure-connect-bundle", managed.bundle)  # fmt: skip
    assert_refused(
        refused,
        2,
        "cluster.contact_points and cluster.secure_connect_bundle (--contact-points, "
        "--secure-connect-bundle): give one of them",
    )


def test_the_doctor_looks_through_the_proxy(ringhaul: Ringhaul, managed: Managed) -> None:
    done = ringhaul.run("doctor", "--json")
    checks = {(one["about"], one["check"]): one for one in json.loads(done.out)["checks"]}
    address = checks["cluster", "address"]
    assert address["level"] == "ok"
    assert address["text"].endswith(f" answers, through the proxy that {managed.bundle} leads to")
    assert checks["cluster", "nodes"]["level"] == "ok"
    # And says what is wrong with a bundle
    (ringhaul.cwd / "broken.zip").write_bytes(b"")
    done = ringhaul.run("doctor", "--json", "--secure-connect-bundle", "broken.zip")
    checks = {(one["about"], one["check"]): one for one in json.loads(done.out)["checks"]}
    assert checks["cluster", "address"]["level"] == "fail"
    assert "is not a secure connect bundle" in checks["cluster", "address"]["text"]
