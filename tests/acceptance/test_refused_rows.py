"""A row that a replica refuses on write is soon a reject; the others are written and counted."""

from __future__ import annotations

import json

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul

#: Of the job. Minutes went by when such a row failed its job.
SECONDS_MAX = 20


@pytest.mark.parametrize(
    "words",
    [
        ["load", "v.csv", "-t", "{t}"],
        ["exec", "INSERT INTO {t} (id, v) VALUES (:id, :v)", "--params", "v.csv"],
    ],
    ids=["load", "exec"],
)
def test_a_vector_that_an_index_refuses(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, words: list[str]
) -> None:
    # Given an index by cosine, which refuses zero vectors and NaN
    table = f"{keyspace}.d01"
    cassandra_session.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v vector<float, 3>)")
    cassandra_session.execute(f"CREATE CUSTOM INDEX ON {table} (v) USING 'StorageAttachedIndex'")
    vectors = ["[1, 2, 3]", "[0, 0, 0]", "[3, 2, 1]", '[""NaN"", 1, 2]', "[1, 1, 1]"]
    file = fleet.cwd / "v.csv"
    file.write_text("id,v\n" + "".join(f'{n},"{v}"\n' for n, v in enumerate(vectors)))
    # When the rows are written
    done = fleet.run(*(word.format(t=table) for word in words), "--json")
    # Then two are soon rejects, and the others are counted and in the table
    assert done.code == 1, done
    summary = done.summary
    assert (summary["records"], summary["rejected"], summary["state"]) == (5, 2, "PARTIAL")
    assert summary.get("loaded", summary.get("answered")) == 3
    errors = fleet.run("errors", summary["job"], "--json").out.splitlines()
    rejects = sorted(map(json.loads, errors), key=lambda reject: int(reject["line"]))
    assert [(r["file"], r["line"], r["stage"]) for r in rejects] == [
        (str(file), 3, "write"),
        (str(file), 5, "write"),
    ]
    assert {row.id for row in cassandra_session.execute(f"SELECT id FROM {table}")} == {0, 2, 4}
    assert summary["elapsed_s"] < SECONDS_MAX
