"""A server's guardrails refuse rows of ordinary users: each is a reject, and the job continues."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from tests.acceptance.command import Ringhaul
from tests.acceptance.conftest import cluster_env
from tests.services import connected, fresh_keyspace

PASSWORD = "open sesame"


@pytest.fixture(scope="module")
def session(login: Endpoints) -> Iterator[Session]:
    """A superuser's session; `ordinary` may read and write everything."""
    with connected(login) as session:
        session.execute(f"CREATE ROLE ordinary WITH LOGIN = true AND PASSWORD = '{PASSWORD}'")
        session.execute("GRANT SELECT ON ALL KEYSPACES TO ordinary")
        session.execute("GRANT MODIFY ON ALL KEYSPACES TO ordinary")
        yield session
        session.execute("DROP ROLE ordinary")


@pytest.fixture
def table(session: Session) -> Iterator[str]:
    """A table with a text and a frozen list."""
    with fresh_keyspace(session) as keyspace:
        session.execute(
            f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY, t text, l frozen<list<text>>)"
        )
        yield f"{keyspace}.t"


@pytest.fixture
def ringhaul(login: Endpoints, tmp_path: Path) -> Ringhaul:
    """The command as `ordinary`, and a file with rows over guardrails in its second, fourth and
    eighth lines."""
    lists = {3: ["x"] * 101, 7: ["z" * 190_000] * 2}
    rows = [(i, "y" * 210_000 if i == 1 else "t", lists.get(i, ["a"])) for i in range(20)]
    with (tmp_path / "in.jsonl").open("w") as file:
        file.writelines(json.dumps({"id": i, "t": t, "l": of}) + "\n" for i, t, of in rows)
    (tmp_path / "password").write_text(PASSWORD)
    env = cluster_env(login, tmp_path / "state") | {
        "RINGHAUL_CLUSTER_USER": "ordinary",
        "RINGHAUL_CLUSTER_PASSWORD_FILE": "password",
    }
    return Ringhaul(env, tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ["load", "in.jsonl", "-t", "{t}"],
        ["load", "in.jsonl", "-t", "{t}", "--strategy", "token-batch"],
        ["exec", "INSERT INTO {t} (id, t, l) VALUES (:id, :t, :l)", "--params", "in.jsonl"],
    ],
    ids=["load", "load in batches", "exec"],
)
def test_rows_over_a_guardrail_are_rejects(
    ringhaul: Ringhaul, session: Session, table: str, words: list[str]
) -> None:
    done = ringhaul.run(*(word.format(t=table) for word in words), "--json", "-c", 1)
    assert done.code == 1, done
    summary = done.summary
    assert (summary["records"], summary["rejected"], summary["state"]) == (20, 3, "PARTIAL")
    errors = ringhaul.run("errors", summary["job"], "--json").out.splitlines()
    rejects = sorted(map(json.loads, errors), key=lambda reject: int(reject["line"]))
    assert [(reject["line"], reject["stage"]) for reject in rejects] == [
        (2, "write"),
        (4, "write"),
        (8, "write"),
    ]
    assert "Value of column 't' has size 210000, this exceeds" in rejects[0]["reason"]
    assert "Detected collection l with 101 items, this exceeds" in rejects[1]["reason"]
    assert "Value of column 'l' has size 380012, this exceeds" in rejects[2]["reason"]
    found = {row.id for row in session.execute(f"SELECT id FROM {table}")}
    assert found == set(range(20)) - {1, 3, 7}
