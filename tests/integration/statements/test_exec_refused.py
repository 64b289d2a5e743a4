"""`exec`: a value that a replica refuses on write rejects its row."""

from __future__ import annotations

import pytest
from cassandra.cluster import Session

from tests.integration.statements.client import reading_client


@pytest.mark.parametrize("bad", [{1}, {2}, {0, 1, 2}])
def test_a_vector_that_the_index_refuses_is_a_reject(
    cassandra_session: Session, keyspace: str, bad: set[int]
) -> None:
    session = cassandra_session
    session.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY, v vector<float, 2>)")
    session.execute(f"CREATE CUSTOM INDEX ON {keyspace}.t (v) USING 'StorageAttachedIndex'")
    vectors = ["[0, 0]" if i in bad else f"[1, {i}]" for i in range(3)]
    with reading_client(session) as client:
        client.exec(f"INSERT INTO {keyspace}.t (id, v) VALUES (?, ?)", ["0", "1", "2"], vectors)
        assert set(client.rejected) == bad and not client.in_doubt
        assert all("reason unknown" in reason for reason in client.rejected.values())
        assert client.stats.answered == 3 - len(bad)
    found = session.execute(f"SELECT id, v FROM {keyspace}.t")
    assert {i: list(v) for i, v in found} == {i: [1, i] for i in range(3) if i not in bad}
