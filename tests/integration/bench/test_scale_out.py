"""The bench of scale-out at a small size: workers far from a server that stores nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.data import SMALL
from bench.harness import Run
from bench.hosts import loopback_hosts
from bench.scale_out import BUSY, FAR, Result, _name, claims, measure
from bench.stage import KEYSPACE, Stage, stage_at
from producer.local.stack import Endpoints


@pytest.fixture
def stage(endpoints: Endpoints, tmp_path: Path) -> Iterator[Stage]:
    with stage_at(endpoints, tmp_path) as shared:
        server = shared.env["RINGHAUL_BROKER_URL"].rpartition("/")[0]
        yield replace(shared, env=shared.env | {"RINGHAUL_BROKER_URL": f"{server}/8"})
        shared.session.execute(f"DROP KEYSPACE {KEYSPACE}", timeout=60)


@pytest.mark.skipif(shutil.which("cargo") is None, reason="the server and the proxy are Rust")
def test_two_workers_on_two_hosts_load_through_the_proxies(stage: Stage) -> None:
    stage.create(SMALL)
    setting = FAR._replace(cluster_ms=2.0, redis_ms=1.0, rows_per_s=5_000.0)
    result = measure(loopback_hosts(), stage, setting, 2, 2, 1_000, 4)
    assert result.run.rows == 1_000
    # The server's bound, and the way there and back to Redis at least once between two units.
    assert result.rows_s <= 5_500
    assert result.pause_ms > 2.0
    # It stores nothing.
    assert stage.count(SMALL) == 0


def test_claims_compare_with_one_worker() -> None:
    def result(rows: int) -> Result:
        run = Run(rows=rows, bytes_count=0, work_s=1, whole_s=1, cpu_s=0, rss_bytes_max=0)
        return Result(run, 0.0)

    found = {
        _name(FAR, 1, 1): result(1_000),
        _name(FAR, 4, 2): result(3_600),
        _name(BUSY, 1, 1): result(5_000),
        _name(BUSY, 4, 2): result(4_000),
    }
    far, busy = claims(found, [(1, 1), (4, 2)])
    assert "kept" in far and "0.90 (at least 0.8)" in far
    assert "MISSED" in busy and "0.80 (at least 0.9)" in busy
