"""Each way of the bench of SSTables loads every row, at a small size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.data import SMALL, data_file
from bench.load_sstables import BY_COPY, DEFAULT, STREAMING, Meter, choose
from bench.site import Site
from bench.stage import KEYSPACE, stage_at
from producer.local.stack import Endpoints

ROWS = 2000


@pytest.fixture
def site(endpoints: Endpoints, tmp_path: Path) -> Iterator[Site]:
    with stage_at(endpoints, tmp_path) as stage:
        stage.env["RINGHAUL_STREAMING_INPUT_BYTES_MIN"] = "0"
        with stage.worker(1) as worker_pid:
            stage.create(SMALL)
            yield Site(stage, SMALL, data_file(tmp_path, SMALL, rows=ROWS), ROWS, worker_pid)
        stage.session.execute(f"DROP KEYSPACE {KEYSPACE}", timeout=60)


def test_each_way_loads_every_row(site: Site) -> None:
    meter = Meter(site, settle_s_max=0.0)
    systems = choose(site, meter)
    assert [system.name for system in systems] == [DEFAULT, STREAMING, BY_COPY]
    contents = []
    for system in systems:
        site.stage.session.execute(f"TRUNCATE {site.name}", timeout=60)
        run = system.run()
        assert run.rows == ROWS
        assert run.cpu_s > 0
        assert meter.median(system.name).until_readable > 0
        columns = ", ".join(SMALL.columns)
        contents.append(sorted(site.stage.session.execute(f"SELECT {columns} FROM {site.name}")))
    assert contents[0] == contents[1] == contents[2]
