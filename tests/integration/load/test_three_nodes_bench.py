"""The third article's ways on three nodes with replication 3, at a small size."""

from __future__ import annotations

from pathlib import Path

import pytest
from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

from bench.data import SMALL, data_file
from bench.peers import driver_pattern
from bench.site import Site
from bench.stage import KEYSPACE, stage_at
from producer.local.stack import Stack

ROWS = 400


@pytest.mark.parametrize("pattern", ["S3a", "S3c"])
def test_a_way_writes_every_row_with_three_replicas(
    three_nodes: Stack, tmp_path: Path, pattern: str
) -> None:
    with stage_at(three_nodes.endpoints(), tmp_path, replication=3) as stage:
        stage.create(SMALL)
        path = data_file(tmp_path, SMALL, rows=ROWS)
        site = Site(stage, SMALL, path, ROWS, worker_pid=0)
        try:
            assert driver_pattern(site, pattern, "it", rows=ROWS).run().rows == ROWS
            every = SimpleStatement(
                f"SELECT id FROM {site.name}", consistency_level=ConsistencyLevel.ALL
            )
            ids = {row[0] for row in stage.session.execute(every, timeout=60)}
            assert ids == {f"k{number:09d}" for number in range(ROWS)}
        finally:
            stage.session.execute(f"DROP KEYSPACE {KEYSPACE}", timeout=60)
