"""Sources that cannot be loaded are refused before a job exists (exit code 2, 4 for damage).

Given a fleet, a table and a source that is missing, empty, misnamed or not for this table,
when it is loaded, then one message says what is wrong, where and what to do, and no row is
written.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator

import pytest
from cassandra.cluster import Session

from producer.local.valkey import EmbeddedValkey
from tests.acceptance.command import Ringhaul
from tests.acceptance.refusals import COLUMNS, nothing_started
from tests.refusals import assert_refused
from tests.services import fresh_keyspace

GOOD = b"id,name,total\n1,a,10\n"


@pytest.fixture(scope="module")
def table(cassandra_session: Session) -> Iterator[str]:
    """A table that the tests of this file leave empty."""
    with fresh_keyspace(cassandra_session) as keyspace:
        cassandra_session.execute(f"CREATE TABLE {keyspace}.orders ({COLUMNS})")
        yield f"{keyspace}.orders"


@pytest.fixture(autouse=True)
def nothing_written(
    cassandra_session: Session, table: str, fleet_broker: EmbeddedValkey
) -> Iterator[None]:
    """Assert for each test that it creates no job and writes no row."""
    with nothing_started(cassandra_session, table, fleet_broker.url):
        yield


def test_a_missing_file_with_a_similar_name_nearby(fleet: Ringhaul, table: str) -> None:
    # Given
    (fleet.cwd / "orders.csv").write_bytes(GOOD)
    # When
    finished = fleet.run("load", "ordres.csv", "-t", table)
    # Then
    assert_refused(finished, 2, "ordres.csv: no such file; did you mean orders.csv?")


def test_standard_input_is_not_kept_when_it_is_refused(fleet: Ringhaul, table: str) -> None:
    # Given a private state folder, in which standard input is spooled
    state = fleet.cwd / "state"
    # When no column matches its header
    finished = fleet.run(
        "load", "-", "-t", table, stdin=b"x,y\n1,2\n", RINGHAUL_STATE_DIR=str(state)
    )
    # Then none of it stays on the disk
    assert finished.code == 2
    assert "the header names no column" in finished.err
    assert list((state / "spool").iterdir()) == []


ARCHIVES = {
    "cut short": (
        gzip.compress(b"id,name,total\n" + os.urandom(3000).hex().encode())[:-9],
        "Compressed file ended before the end-of-stream marker was reached",
    ),
    "misnamed": (GOOD, "Not a gzipped file (b'id')"),
}


@pytest.mark.parametrize(("content", "reason"), ARCHIVES.values(), ids=ARCHIVES)
def test_an_archive_that_is(fleet: Ringhaul, table: str, content: bytes, reason: str) -> None:
    path = fleet.cwd / "orders.csv.gz"
    path.write_bytes(content)
    finished = fleet.run("load", path, "-t", table)
    assert_refused(
        finished,
        4,
        f"{path}: cannot be decompressed as .gz: {reason}; it is cut short, damaged, or misnamed",
    )
