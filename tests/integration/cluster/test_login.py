"""A stack with password authentication, and `ringhaul load` into it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cassandra import AuthenticationFailed
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import NoHostAvailable

from producer.local.stack import Endpoints
from tests.acceptance.command import Ringhaul
from tests.acceptance.conftest import cluster_env
from tests.acceptance.oracle import assert_report, assert_table, create_table
from tests.integration.cluster.conftest import GuardedNode
from tests.refusals import assert_refused
from tests.services import connected, fresh_keyspace, patient_cluster
from tests.terminal import on_a_terminal


@pytest.fixture
def ringhaul(login: Endpoints, tmp_path: Path) -> Ringhaul:
    """The command with the address and without a password."""
    (tmp_path / "rows.csv").write_text("id\n1\n2\n")
    return Ringhaul(cluster_env(login, tmp_path / "state"), tmp_path)


def test_a_stack_with_passwords_checks_them(guarded: GuardedNode) -> None:
    ends = guarded.endpoints
    with connected(ends) as session:
        roles = {row.role for row in session.execute("SELECT role FROM system_auth.roles")}
        assert "cassandra" in roles
    assert guarded.stack.env()["RINGHAUL_CLUSTER_USER"] == "cassandra"
    wrong = patient_cluster(
        ends.contact_points,
        port=ends.port,
        auth_provider=PlainTextAuthProvider("cassandra", "not this"),
        protocol_version=5,
    )
    try:
        with pytest.raises(NoHostAvailable) as caught:
            wrong.connect()
    finally:
        wrong.shutdown()
    assert all(isinstance(e, AuthenticationFailed) for e in caught.value.errors.values())


LOAD = ("load", "rows.csv", "-t", "shop.orders")


def test_a_missing_user(ringhaul: Ringhaul, login: Endpoints) -> None:
    assert_refused(
        ringhaul.run(*LOAD),
        4,
        f"the cluster at 127.0.0.1:{login.port} asks for a user and none is set "
        "(--user with -p or --password-file, or cluster.user and cluster.password_file)",
    )


def test_a_wrong_password(ringhaul: Ringhaul, login: Endpoints) -> None:
    (ringhaul.cwd / "password").write_text("sesame\n")
    assert_refused(
        ringhaul.run(*LOAD, "--user", "cassandra", "--password-file", "password"),
        4,
        f"the cluster at 127.0.0.1:{login.port} refused user 'cassandra': Provided username "
        "cassandra and/or password are incorrect. Check the user and the password",
    )


def test_a_missing_password_file(ringhaul: Ringhaul) -> None:
    finished = ringhaul.run(*LOAD, "--user", "cassandra", "--password-file", "no-file")
    path = ringhaul.cwd / "no-file"
    message = f"cluster.password_file: cannot read {path}: No such file or directory"
    assert_refused(finished, 2, message)


def test_the_right_password_from_a_file(ringhaul: Ringhaul, login: Endpoints) -> None:
    assert login.user is not None and login.password_file is not None
    with connected(login) as session, fresh_keyspace(session) as keyspace:
        table = create_table(session, keyspace, "id int PRIMARY KEY")
        finished = ringhaul.run(
            *("load", "rows.csv", "-t", table, "--json"),
            *("--user", login.user, "--password-file", login.password_file),
        )
        assert_report(finished, rows=2)
        assert_table(session, table, "id", [(1,), (2,)])


def test_the_right_password_from_the_terminal(
    ringhaul: Ringhaul, login: Endpoints, tmp_path: Path
) -> None:
    assert login.user is not None and login.password_file is not None
    password = login.password_file.read_text().strip()
    with connected(login) as session, fresh_keyspace(session) as keyspace:
        table = create_table(session, keyspace, "id int PRIMARY KEY")
        # When the password is typed at the prompt
        argv = ringhaul.argv("load", "rows.csv", "-t", table, "-u", login.user, "-p", "-q")
        code, screen = on_a_terminal(argv, f"{password}\n", ringhaul.env, ringhaul.cwd)
        # Then the command and its workers log in with it
        assert code == 0, screen
        assert_table(session, table, "id", [(1,), (2,)])
        # And it is on no screen, and in no file of the command
        assert f"Password of {login.user}: " in screen and password not in without_name(screen)
        for path in (tmp_path / "state").rglob("*.log"):
            assert "Password" not in path.read_text(errors="replace")


def without_name(screen: str) -> str:
    """The user of a new Cassandra has its name as password."""
    return screen.replace("Password of cassandra", "")
