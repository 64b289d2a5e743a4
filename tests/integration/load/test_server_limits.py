"""Rows larger than a server's largest mutation, on the strict node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from ringhaul.cluster.connect import close_session, open_session
from ringhaul.load.write import WRITERS
from tests.integration.load.conftest import cluster_config, make_table, read_table, run_file
from tests.loads import rejects_of
from tests.servers import SharedNode
from tests.services import fresh_keyspace


@pytest.fixture(scope="module")
def strict_session(strict_node: SharedNode) -> Iterator[Session]:
    """A worker's session on the node, whose largest mutation has 256 KiB."""
    session = open_session(cluster_config(strict_node.stack.endpoints()))
    yield session
    assert close_session(session)


@pytest.mark.parametrize("strategy", sorted(WRITERS))
def test_rows_over_a_limit_of_the_server_are_rejects(
    strict_session: Session, tmp_path: Path, strategy: str
) -> None:
    # Given, among others, two rows larger than the largest mutation, one because of its elements
    texts, items = {4: "y" * 400_000}, {7: [*range(60_000)]}
    rows = [(i, texts.get(i, f"t{i}"), items.get(i, [i, i + 1])) for i in range(60)]
    path = tmp_path / "in.csv"
    path.write_text("".join(f'{i},{t},"{json.dumps(s)}"\n' for i, t, s in rows))
    with fresh_keyspace(strict_session) as keyspace:
        table = make_table(strict_session, keyspace, "id int PRIMARY KEY, t text, s set<int>")
        # When they are loaded
        outcome = run_file(strict_session, table, path, ["id", "t", "s"], strategy=strategy)
        # Then these are rejects with their lines, and all others are in the table
        rejects = rejects_of(outcome)
        assert [(r.line, r.stage) for r in rejects] == [(5, "write"), (8, "write")]
        assert (outcome.records, outcome.written) == (60, 58)
        found = read_table(strict_session, keyspace, "id, t, s")
        assert sorted((i, t, sorted(s)) for i, t, s in found) == [
            row for row in rows if row[0] not in (4, 7)
        ]
