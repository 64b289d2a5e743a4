"""A cluster that accepts only TLS, with a client certificate and a password."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session
from cassandra.connection import DRIVER_NAME

from ringhaul.cluster.connect import close_session, open_session
from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.oracle import assert_report, assert_table, create_table
from tests.integration.cluster.conftest import GuardedNode
from tests.integration.load.conftest import Ticks, make_table, read_table, run_file
from tests.loads import rejects_of
from tests.refusals import assert_refused
from tests.services import fresh_keyspace

USER, PASSWORD = "cassandra", "cassandra"
LOAD = ("load", "rows.csv", "-t", "shop.orders")


@pytest.fixture
def tls_session(guarded: GuardedNode) -> Iterator[Session]:
    """A session as a worker process opens it."""
    session = open_session(guarded.tls_config)
    yield session
    assert close_session(session, 20)


@pytest.fixture
def ringhaul(guarded: GuardedNode, tmp_path: Path) -> Ringhaul:
    """The command with everything that the node requires."""
    (tmp_path / "rows.csv").write_text("id,v\n" + "".join(f"{i},v{i}\n" for i in range(3000)))
    (tmp_path / "password").write_text(PASSWORD)
    env = {
        "RINGHAUL_CLUSTER_CONTACT_POINTS": "127.0.0.1",
        "RINGHAUL_CLUSTER_PORT": str(guarded.tls_port),
        "RINGHAUL_CLUSTER_USER": USER,
        "RINGHAUL_CLUSTER_PASSWORD_FILE": str(tmp_path / "password"),
        "RINGHAUL_CLUSTER_TLS": "true",
        "RINGHAUL_CLUSTER_TLS_CA": guarded.pem("ca"),
        "RINGHAUL_CLUSTER_TLS_CERT": guarded.pem("client"),
        "RINGHAUL_CLUSTER_TLS_KEY": guarded.pem("client_key"),
        "RINGHAUL_STATE_DIR": str(tmp_path / "state"),
    }
    return Ringhaul(env, tmp_path)


def test_rows_go_through_the_pipeline_by_tls(tls_session: Session, tmp_path: Path) -> None:
    # Given small rows, and some larger than a TLS record and than the socket's buffer
    with fresh_keyspace(tls_session) as keyspace:
        table = make_table(tls_session, keyspace, "id int PRIMARY KEY, v text")
        rows = [(i, f"v{i}" * (1 if i % 100 else 20_000)) for i in range(5000)]
        path = tmp_path / "in.csv"
        path.write_text("".join(f"{i},{v}\n" for i, v in rows))
        seen: set[tuple[object, ...]] = set()

        def look() -> None:
            """Note the node's clients except the driver, which sends its name."""
            for client in tls_session.execute("SELECT * FROM system_views.clients"):
                if client.driver_name != DRIVER_NAME and client.connection_stage == "ready":
                    seen.add((client.ssl_enabled, client.username))

        outcome = run_file(
            tls_session, table, path, ["id", "v"], strategy="pipeline", ticks=Ticks(then=look)
        )
        # Then all of them are in the table
        assert (outcome.written, rejects_of(outcome), outcome.retries) == (5000, [], 0)
        assert read_table(tls_session, keyspace, "id, v") == sorted(rows, key=repr)
        # And they came over the pipeline's connection, encrypted, as the configured user
        assert outcome.window is not None
        assert seen == {(True, USER)}


def test_the_command_loads_by_tls(tls_session: Session, ringhaul: Ringhaul) -> None:
    with fresh_keyspace(tls_session) as keyspace:
        table = create_table(tls_session, keyspace, "id int PRIMARY KEY, v text")
        finished = ringhaul.run("load", "rows.csv", "-t", table, "--json")
        summary = assert_report(finished, rows=3000)
        assert summary["window_max"] > 0, "the pipeline did it"
        assert_table(tls_session, table, "id, v", [(i, f"v{i}") for i in range(3000)])


def test_an_authority_that_did_not_sign_the_nodes_certificate(
    ringhaul: Ringhaul, guarded: GuardedNode
) -> None:
    assert_refused(
        ringhaul.run(*LOAD, RINGHAUL_CLUSTER_TLS_CA=guarded.pem("stranger_ca")),
        4,
        f"the certificate of 127.0.0.1:{guarded.tls_port} is not trusted: unable to get "
        "local issuer certificate. Is cluster.tls_ca the authority that issued it?",
    )


def assert_handshake_ended(finished: Finished, guarded: GuardedNode, hint: str) -> None:
    """Assert the message, whose end depends on which side notices first."""
    begin = f"error: the cluster at 127.0.0.1:{guarded.tls_port} ended the TLS handshake: "
    assert finished.err.startswith(begin)
    assert finished.err.endswith(f". {hint}\n")
    assert finished.err.count("\n") == 1
    assert (finished.code, finished.out) == (4, "")


def test_a_missing_client_certificate(ringhaul: Ringhaul, guarded: GuardedNode) -> None:
    del ringhaul.env["RINGHAUL_CLUSTER_TLS_CERT"], ringhaul.env["RINGHAUL_CLUSTER_TLS_KEY"]
    assert_handshake_ended(
        ringhaul.run(*LOAD),
        guarded,
        "Does it ask for a client certificate (cluster.tls_cert and cluster.tls_key)?",
    )


def test_a_client_certificate_of_another_authority(
    ringhaul: Ringhaul, guarded: GuardedNode
) -> None:
    stranger = {
        "RINGHAUL_CLUSTER_TLS_CERT": guarded.pem("stranger"),
        "RINGHAUL_CLUSTER_TLS_KEY": guarded.pem("stranger_key"),
    }
    assert_handshake_ended(
        ringhaul.run(*LOAD, **stranger),
        guarded,
        f"Does it trust the authority that issued cluster.tls_cert {guarded.pem('stranger')}?",
    )


def test_a_wrong_password_with_tls(ringhaul: Ringhaul, guarded: GuardedNode) -> None:
    (ringhaul.cwd / "password").write_text("sesame")
    assert_refused(
        ringhaul.run(*LOAD),
        4,
        f"the cluster at 127.0.0.1:{guarded.tls_port} refused user 'cassandra': Provided username "
        "cassandra and/or password are incorrect. Check the user and the password",
    )


def test_a_tls_only_node_is_never_contacted_without_tls(
    ringhaul: Ringhaul, guarded: GuardedNode
) -> None:
    for name in ("TLS", "TLS_CA", "TLS_CERT", "TLS_KEY"):
        del ringhaul.env[f"RINGHAUL_CLUSTER_{name}"]
    finished = ringhaul.run(*LOAD, RINGHAUL_CLUSTER_CONNECT_TIMEOUT_S="2")
    assert finished.code == 4
    assert finished.err.startswith(
        f"error: 127.0.0.1:{guarded.tls_port} closed the connection before it answered. "
        "If TLS is set as the node has it (cluster.tls), "
    ), finished.err
