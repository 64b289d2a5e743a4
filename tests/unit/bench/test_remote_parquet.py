"""The bench of row groups behind URLs: all systems find the same rows."""

from pathlib import Path

import pytest

from bench import remote_parquet
from bench.remote_parquet import BUFFERED, COLUMNS, OURS, PLAIN, _batches, _served, _write
from ringhaul.storage.access import Access, access, set_access


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the simulated delay of each request."""
    monkeypatch.setattr(remote_parquet, "DELAY_S", 0.0)


def test_all_systems_read_the_same(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    _write(path, 1)
    before: Access = access()
    try:
        with _served(path) as (url, counted):
            totals = []
            for system in (OURS, PLAIN, BUFFERED):
                counted.clear()
                batches = list(_batches(system, url))
                assert counted, system
                rows = sum(batch.num_rows for batch in batches)
                totals.append((rows, sum(sum(b.column(0).to_pylist()) for b in batches)))
    finally:
        set_access(before)
    assert totals[0][0] == (1 << 20) // COLUMNS // 8
    assert totals[0] == totals[1] == totals[2]
