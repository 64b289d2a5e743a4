"""The scratch table: like the user's own, with its indexes, and dropped again."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from cassandra.cluster import Session

from config.sections import Settings
from producer.tune.scratch_table import PREFIX, NotDropped, ScratchTable, left_behind
from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.tables import find_table

DEFINITION = """(
    "Region" text, day date, n int, owner text static, tags map<text, int>, price decimal,
    PRIMARY KEY (("Region", day), n)
) WITH CLUSTERING ORDER BY (n DESC) AND comment = 'ours' AND default_time_to_live = 600
  AND compaction = {'class': 'LeveledCompactionStrategy'}"""


@pytest.fixture
def like(cassandra_session: Session, keyspace: str) -> Iterator[str]:
    """A table with a name, columns, options and indexes that are easily lost."""
    table = f'{keyspace}."Orders"'
    cassandra_session.execute(f"CREATE TABLE {table} {DEFINITION}")
    cassandra_session.execute(f"CREATE INDEX by_price ON {table} (price)")
    cassandra_session.execute(f"CREATE INDEX by_tag ON {table} (entries(tags))")
    cassandra_session.cluster.refresh_schema_metadata()
    yield keyspace


def columns_of(session: Session, keyspace: str, table: str) -> list[tuple[object, ...]]:
    rows = session.execute(
        "SELECT column_name, type, kind, position, clustering_order FROM system_schema.columns "
        "WHERE keyspace_name = %s AND table_name = %s",
        [keyspace, table],
    )
    return sorted(map(tuple, rows))


def test_it_is_like_the_table_and_is_dropped(cassandra_session: Session, like: str) -> None:
    metadata = cassandra_session.cluster.metadata
    original = find_table(DriverView(cassandra_session), like, "Orders")
    scratch = ScratchTable(cassandra_session, Settings(), original, "abc123")
    created = scratch.create()
    name = f"{PREFIX}abc123"
    assert created.table == name and scratch.name == f"{like}.{name}"
    assert created.columns == original.columns and created.primary_key == original.primary_key
    assert columns_of(cassandra_session, like, name) == columns_of(
        cassandra_session, like, "Orders"
    )
    tables = metadata.keyspaces[like].tables
    ours, theirs = tables[name].options, tables["Orders"].options
    assert {k: v for k, v in ours.items() if k != "comment"} == {
        k: v for k, v in theirs.items() if k != "comment"
    }
    assert theirs["comment"] == "ours" and "ringhaul tune" in ours["comment"]
    targets = sorted(i.index_options["target"] for i in tables[name].indexes.values())
    assert targets == ["entries(tags)", "price"]
    # A run that is killed leaves it behind, and the next one says so
    assert left_behind(DriverView(cassandra_session), like) == [
        f'DROP TABLE IF EXISTS "{like}"."{name}"'
    ]
    scratch.drop(time.monotonic() + 30)
    assert columns_of(cassandra_session, like, name) == []
    assert columns_of(cassandra_session, like, "Orders")
    scratch.drop(time.monotonic())  # again: nothing to do


def test_dropping_that_is_too_slow_names_the_statement(
    cassandra_session: Session, like: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = find_table(DriverView(cassandra_session), like, "Orders")
    scratch = ScratchTable(cassandra_session, Settings(), original, "abc124")
    scratch.create()
    monkeypatch.setattr("producer.tune.scratch_table.DROP_TIMEOUT_S", 0.0001)
    with pytest.raises(NotDropped, match=r'DROP TABLE IF EXISTS "\w+"."ringhaul_tune_abc124";'):
        scratch.drop(time.monotonic())


def test_nothing_is_dropped_that_was_not_created(cassandra_session: Session, like: str) -> None:
    original = find_table(DriverView(cassandra_session), like, "Orders")
    ScratchTable(cassandra_session, Settings(), original, "abc125").drop(time.monotonic())
