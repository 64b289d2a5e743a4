"""The grid of the tuning bench measures every setup, and a choice beside the best: a small one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import harness
from bench.data import SMALL, data_file
from bench.site import Site
from bench.stage import KEYSPACE, Stage, stage_at
from bench.tune_grid import compare, keep_outcomes, report, setups_of
from producer.local.stack import Endpoints
from producer.tune.setup import Knob, Setup

ROWS = 2_000
GRID = {
    Knob.STRATEGY: ("pipeline", "single"),
    Knob.WORKERS: (1, 2),
    Knob.BATCH_ROWS: (2, 0),
    Knob.IN_FLIGHT: (0,),
    Knob.UNIT_BYTES: (0,),
}
CHOICE = Setup(workers=1, in_flight=256)


def test_setups_without_batches_are_not_repeated() -> None:
    setups = setups_of(GRID)
    assert len(setups) == len(set(setups)) == 6  # 2 x 2 of pipeline, 2 of single
    assert {one.batch_rows for one in setups if one.strategy == "single"} == {0}


def tables(stage: Stage) -> set[str]:
    rows = stage.session.execute(
        f"SELECT table_name FROM system_schema.tables WHERE keyspace_name = '{KEYSPACE}'"
    )
    return {row.table_name for row in rows}


def test_the_choice_meets_the_best_of_the_grid(
    endpoints: Endpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage_at(endpoints, tmp_path) as stage:
        stage.create(SMALL)
        site = Site(stage, SMALL, data_file(tmp_path, SMALL, rows=ROWS), ROWS, worker_pid=0)
        before = tables(stage)
        found = compare(site, CHOICE, 1.0, grid=GRID, rounds=1, duels=2, budget_s=20)
        assert tables(stage) == before
        assert stage.count(SMALL) == 0  # only the scratch table was written
        stage.session.execute(f"DROP KEYSPACE {KEYSPACE}", timeout=60)
    assert found.setups == 7
    assert 1 <= found.rank <= 7 and found.ratio > 0
    assert "to the best of 7 setups" in report(found)
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    (row,) = json.loads(keep_outcomes([found], 20, 1).read_text())["rows"]
    assert row[0] == SMALL.name and row[1:4] == [round(found.ratio, 2), found.rank, 7]
