"""The columns of a prepared statement's markers, with the schema of a real cluster."""

from __future__ import annotations

import pytest
from cassandra.cluster import Session

from producer.plan.statement_table import has_lists
from ringhaul.cluster.driver_view import DriverView

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
    cluster = DriverView(cassandra_session)
    assert has_lists(cluster, cluster.prepare(statement.format(ks=keyspace))) is expected
