"""The columns of a prepared statement's markers, with the schema of a real cluster."""

from __future__ import annotations

import pytest
from cassandra.cluster import Session

from ringhaul.cluster.markers import has_lists

TABLES = {
    "growing": "id int PRIMARY KEY, v text, tags list<text>",
    "frozen_ones": "id int PRIMARY KEY, v text, tags frozen<list<text>>, names set<text>",
}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("INSERT INTO {ks}.growing (id, tags) VALUES (?, ?)", True),
        ("UPDATE {ks}.growing SET tags = ['a'] WHERE id = ?", True),
        ("INSERT INTO {ks}.frozen_ones (id, tags, names) VALUES (?, ?, ?)", False),
        (
            "BEGIN UNLOGGED BATCH INSERT INTO {ks}.frozen_ones (id, v) VALUES (?, ?); "
            "INSERT INTO {ks}.growing (id, v) VALUES (?, ?); APPLY BATCH",
            True,
        ),
    ],
)
def test_lists_that_are_not_frozen(
    cassandra_session: Session, keyspace: str, statement: str, expected: bool
) -> None:
    for name, definition in TABLES.items():
        cassandra_session.execute(f"CREATE TABLE {keyspace}.{name} ({definition})")
    cassandra_session.cluster.refresh_schema_metadata()
    prepared = cassandra_session.prepare(statement.format(ks=keyspace))
    assert has_lists(cassandra_session, prepared) is expected
