"""`load --via streaming` to a node that encrypts its storage port and wants certificates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Finished, Ringhaul
from tests.integration.cluster.conftest import GuardedNode
from tests.services import connected, fresh_keyspace

ROWS = 500


@pytest.fixture(scope="module")
def session(guarded: GuardedNode) -> Iterator[Session]:
    with connected(guarded.endpoints) as found:
        yield found


@pytest.fixture
def table(session: Session) -> Iterator[str]:
    with fresh_keyspace(session) as keyspace:
        session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY, v text)")
        yield f"{keyspace}.t"


def environment(guarded: GuardedNode, folder: Path) -> dict[str, str]:
    """Return the settings of the node's superuser."""
    ends = guarded.endpoints
    assert ends.user is not None and ends.password_file is not None
    return {
        "RINGHAUL_CLUSTER_CONTACT_POINTS": ",".join(ends.contact_points),
        "RINGHAUL_CLUSTER_PORT": str(ends.port),
        "RINGHAUL_CLUSTER_USER": ends.user,
        "RINGHAUL_CLUSTER_PASSWORD_FILE": str(ends.password_file),
        "RINGHAUL_STATE_DIR": str(folder / "state"),
    }


def stream(
    guarded: GuardedNode, table: str, folder: Path, login: dict[str, str] | None = None, **tls: str
) -> Finished:
    """Stream some rows with these settings of `streaming.tls_*`."""
    lines = [f"{n},value {n}" for n in range(ROWS)]
    (folder / "in.csv").write_text("k,v\n" + "\n".join(lines) + "\n")
    env = {
        **environment(guarded, folder),
        "RINGHAUL_STREAMING_INPUT_BYTES_MIN": "0",
        **({"RINGHAUL_STREAMING_TLS": "true"} if tls else {}),
        **{f"RINGHAUL_STREAMING_TLS_{name.upper()}": path for name, path in tls.items()},
        **(login or {}),
    }
    command = Ringhaul(env, folder)
    return command.run("load", "in.csv", "-t", table, "--via", "streaming", "--json", "-c", "1")


def certificates(guarded: GuardedNode) -> dict[str, str]:
    """What the node wants from a client."""
    names = {"ca": "ca", "cert": "client", "key": "client_key"}
    return {name: guarded.pem(pem) for name, pem in names.items()}


def test_rows_are_streamed_with_a_certificate(
    guarded: GuardedNode, session: Session, table: str, tmp_path: Path
) -> None:
    done = stream(guarded, table, tmp_path, **certificates(guarded))
    assert done.code == 0, done
    found = {row.k: row.v for row in session.execute(f"SELECT k, v FROM {table}")}
    assert found == {n: f"value {n}" for n in range(ROWS)}


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "encrypts its storage port (internode_encryption): set streaming.tls"),
        ({"ca": "stranger_ca"}, "check streaming.tls_ca, tls_cert and tls_key"),
        ({"ca": "ca"}, "check streaming.tls_ca, tls_cert and tls_key"),
        (
            {"ca": "ca", "cert": "stranger", "key": "stranger_key"},
            "check streaming.tls_ca, tls_cert and tls_key",
        ),
    ],
)
def test_others_are_refused(
    guarded: GuardedNode,
    session: Session,
    table: str,
    tmp_path: Path,
    files: dict[str, str],
    why: str,
) -> None:
    done = stream(
        guarded, table, tmp_path, **{name: guarded.pem(pem) for name, pem in files.items()}
    )
    assert done.code == 2, done
    assert why in done.err
    assert not session.execute(f"SELECT * FROM {table}").all()


def test_a_user_who_may_only_read_is_refused(
    guarded: GuardedNode, session: Session, table: str, tmp_path: Path
) -> None:
    """The storage port knows no users, so the load asks on CQL's."""
    session.execute("CREATE ROLE IF NOT EXISTS reader WITH PASSWORD = 'reading' AND LOGIN = true")
    session.execute(f"GRANT SELECT ON {table} TO reader")
    password = tmp_path / "password"
    password.write_text("reading")
    password.chmod(0o600)
    login = {
        "RINGHAUL_CLUSTER_USER": "reader",
        "RINGHAUL_CLUSTER_PASSWORD_FILE": str(password),
    }
    done = stream(guarded, table, tmp_path, login, **certificates(guarded))
    session.execute("DROP ROLE reader")
    assert done.code == 4, done
    assert "user 'reader' may not do this" in done.err and "MODIFY" in done.err
    assert not session.execute(f"SELECT * FROM {table}").all()


def test_a_user_who_may_not_read_settings_decides_the_version_of_files(
    guarded: GuardedNode, session: Session, table: str, tmp_path: Path
) -> None:
    """Files of a version that the nodes do not read cost an import that is refused, and no more."""
    session.execute("CREATE ROLE IF NOT EXISTS writer WITH PASSWORD = 'writing' AND LOGIN = true")
    session.execute(f"GRANT MODIFY ON {table} TO writer")
    session.execute(f"GRANT SELECT ON {table} TO writer")
    password = tmp_path / "password"
    password.write_text("writing")
    password.chmod(0o600)
    (tmp_path / "in.csv").write_text("k,v\n1,one\n")
    codes = []
    for user in ("writer", "cassandra"):
        login = {} if user == "cassandra" else {"RINGHAUL_CLUSTER_USER": user}
        if login:
            login["RINGHAUL_CLUSTER_PASSWORD_FILE"] = str(password)
        command = Ringhaul(environment(guarded, tmp_path) | login, tmp_path)
        done = command.run(
            "load", "in.csv", "-t", table, "--to-sstables", user, "--sstable-version", "oa", "-c", 1
        )
        codes.append((done.code, "storage_compatibility_mode is CASSANDRA_4" in done.err))
    session.execute("DROP ROLE writer")
    assert codes == [(0, False), (2, True)]
    (data,) = (tmp_path / "writer").rglob("*-Data.db")
    assert data.name.startswith("oa-")
