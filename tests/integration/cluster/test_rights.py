"""Users with missing permissions: the message names user and permission, and nothing is done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from producer.local.stack import Endpoints
from tests.acceptance.command import Ringhaul
from tests.acceptance.conftest import cluster_env
from tests.acceptance.oracle import assert_report, assert_table, create_table
from tests.services import connected, fresh_keyspace

PASSWORD = "open sesame"
ROWS = [(1,), (2,)]


@pytest.fixture(scope="module")
def table(login: Endpoints) -> Iterator[str]:
    """A table of two rows; `reader` may read it, `writer` may write it."""
    with connected(login) as session, fresh_keyspace(session) as keyspace:
        name = create_table(session, keyspace, "id int PRIMARY KEY")
        session.execute(f"INSERT INTO {name} (id) VALUES (1)")
        session.execute(f"INSERT INTO {name} (id) VALUES (2)")
        for role, right in (("reader", "SELECT"), ("writer", "MODIFY")):
            session.execute(f"CREATE ROLE {role} WITH LOGIN = true AND PASSWORD = '{PASSWORD}'")
            session.execute(f"GRANT {right} ON {name} TO {role}")
        yield name
        for role in ("reader", "writer"):
            session.execute(f"DROP ROLE {role}")


@pytest.fixture
def ringhaul(login: Endpoints, tmp_path: Path) -> Ringhaul:
    """The command with the password of both users, and a file of three keys."""
    (tmp_path / "password").write_text(PASSWORD)
    (tmp_path / "keys.csv").write_text("id\n1\n2\n3\n")
    env = cluster_env(login, tmp_path / "state")
    return Ringhaul(env | {"RINGHAUL_CLUSTER_PASSWORD_FILE": "password"}, tmp_path)


@pytest.mark.parametrize(
    ("user", "right", "words"),
    [
        ("writer", "SELECT", ["unload", "-t", "{t}", "-o", "out"]),
        ("writer", "SELECT", ["count", "-t", "{t}"]),
        ("writer", "SELECT", ["query", "SELECT max(id) FROM {t}"]),
        ("writer", "SELECT", ["lookup", "-t", "{t}", "--keys", "keys.csv"]),
        ("writer", "SELECT", ["exec", "SELECT * FROM {t} WHERE id = ?", "--params", "keys.csv"]),
        ("reader", "MODIFY", ["exec", "DELETE FROM {t} WHERE id = ?", "--params", "keys.csv"]),
        ("reader", "MODIFY", ["load", "keys.csv", "-t", "{t}"]),
    ],
)
def test_a_missing_permission_is_reported(
    ringhaul: Ringhaul, login: Endpoints, table: str, user: str, right: str, words: list[str]
) -> None:
    done = ringhaul.run(*(word.format(t=table) for word in words), "--user", user, "-c", "1")
    # `lookup` and `exec` start their output with the header
    assert done.code == 4 and done.out in ("", "id\n"), done
    message = f": User {user} has no {right} permission on <table {table}> or any of its parents\n"
    assert message in done.err and "Traceback" not in done.err, done.err
    assert not (ringhaul.cwd / "out" / "_manifest.json").exists()
    with connected(login) as session:
        assert_table(session, table, "id", ROWS)


def test_a_scratch_table_that_may_not_be_created(
    ringhaul: Ringhaul, login: Endpoints, table: str
) -> None:
    words = ["tune", "keys.csv", "-t", table, "--budget", "30s"]
    done = ringhaul.run(*words, "--user", "writer", "-c", "1")
    keyspace = table.partition(".")[0]
    assert done.code == 4, done
    assert f'GRANT CREATE ON KEYSPACE "{keyspace}" TO writer' in done.err, done.err
    assert "--in-place" in done.err and "Traceback" not in done.err
    assert not (ringhaul.cwd / "ringhaul.toml").exists()
    with connected(login) as session:
        assert_table(session, table, "id", ROWS)


def test_the_documented_permissions_are_enough(
    ringhaul: Ringhaul, login: Endpoints, table: str
) -> None:
    """The permissions in docs/how-to/operations.md are enough."""
    read = ringhaul.run("unload", "-t", table, "-o", "-", "--user", "reader", "-c", "1")
    assert (read.code, sorted(read.out.split())) == (0, ["1", "2", "id"]), read
    written = ringhaul.run("load", "keys.csv", "-t", table, "--user", "writer", "-c", "1", "--json")
    assert_report(written, rows=3)
    with connected(login) as session:
        assert_table(session, table, "id", [*ROWS, (3,)])
        session.execute(f"DELETE FROM {table} WHERE id = 3")
