"""`ringhaul local cql`: cqlsh at the running stack, with statements from every place."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints, Stack
from tests.acceptance.command import Ringhaul
from tests.services import user_cache_dir
from tests.terminal import on_a_terminal


@pytest.fixture
def ringhaul(stack: Stack, endpoints: Endpoints, tmp_path: Path) -> Ringhaul:
    """The command with the test stack as its local one, in a home with a cqlshrc for another
    cluster."""
    home = tmp_path / "home"
    (home / ".cassandra").mkdir(parents=True)
    (home / ".cassandra" / "cqlshrc").write_text("[connection]\nhostname = 192.0.2.1\nssl = true\n")
    env = {
        "RINGHAUL_STATE_DIR": str(stack._state_dir),
        "RINGHAUL_CACHE_DIR": str(user_cache_dir()),
        "HOME": str(home),
    }
    return Ringhaul(env, tmp_path, fresh=True)


@pytest.fixture
def name(cassandra_session: Session) -> Iterator[str]:
    """A keyspace that does not exist yet."""
    name = f"first_{secrets.token_hex(4)}"
    yield name
    cassandra_session.execute(f"DROP KEYSPACE IF EXISTS {name}", timeout=60)


def test_statements_create_a_keyspace_and_a_table(
    ringhaul: Ringhaul, cassandra_session: Session, name: str
) -> None:
    # Given the message about a missing keyspace, When its statement is run
    (ringhaul.cwd / "a.csv").write_text("id,v\n1,a\n")
    missing = ringhaul.run("load", "a.csv", "-t", f"{name}.t", "--broker", "none")
    statement = missing.err.strip().partition("local stack): ")[2]
    assert statement.startswith(f"CREATE KEYSPACE {name} WITH")
    done = ringhaul.run("local", "cql", "-e", statement)
    assert (done.code, done.out, done.err) == (0, "", "")

    # Then statements from a file and from standard input find it
    file = ringhaul.cwd / "table.cql"
    file.write_text(f"USE {name};\nCREATE TABLE t (id int PRIMARY KEY, v text);\n")
    assert ringhaul.run("local", "cql", file).code == 0
    text = f"INSERT INTO {name}.t (id, v) VALUES (1, 'a'); SELECT v FROM {name}.t;"
    asked = ringhaul.run("local", "cql", stdin=text.encode())
    assert (asked.code, asked.err) == (0, "")
    assert [line.strip() for line in asked.out.splitlines() if line.strip()] == [
        "v", "---", "a", "(1 rows)",
    ]  # fmt: skip
    assert cassandra_session.execute(f"SELECT id, v FROM {name}.t").one() == (1, "a")
    described = ringhaul.run("local", "cql", "-e", f"DESCRIBE TABLE {name}.t")
    assert f"CREATE TABLE {name}.t (" in described.out


def test_an_error_is_one_line_and_code_2(ringhaul: Ringhaul) -> None:
    failed = ringhaul.run("local", "cql", "-e", "SELECT * FROM nowhere.t;")
    assert failed.code == 2
    assert failed.out == "" and len(failed.err.splitlines()) == 1
    assert "keyspace nowhere does not exist" in failed.err
    both = ringhaul.run("local", "cql", "-e", "SELECT 1", __file__)
    assert both.code == 2 and "give FILE or -e" in both.err


def test_on_a_terminal_there_is_a_prompt(ringhaul: Ringhaul) -> None:
    code, screen = on_a_terminal(
        ringhaul.argv("local", "cql"),
        "SELECT cluster_name FROM system.local;\nexit\n",
        ringhaul.env | {"TERM": "dumb"},
        ringhaul.cwd,
        prompt="cqlsh> ",
    )
    assert code == 0, screen
    assert "Connected to" in screen and "(1 rows)" in screen and "WARNING" not in screen


def test_without_a_stack_it_says_how_to_start_one(tmp_path: Path) -> None:
    nothing = Ringhaul({"RINGHAUL_STATE_DIR": str(tmp_path / "state")}, tmp_path)
    done = nothing.run("local", "cql", "-e", "SELECT 1")
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: the local stack is not up: start it with `ringhaul local up`\n"


def test_exec_points_to_it(tmp_path: Path) -> None:
    ringhaul = Ringhaul({"RINGHAUL_STATE_DIR": str(tmp_path / "state")}, tmp_path)
    done = ringhaul.run("exec", "create table k.t (id int PRIMARY KEY)")
    assert (done.code, done.out) == (2, "")
    assert "exec cannot run CREATE, which has no values" in done.err
    assert "`ringhaul local cql -e 'create table k.t (id int PRIMARY KEY)'`" in done.err
