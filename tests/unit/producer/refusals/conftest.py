"""A command that plans without servers, and the tables of `tests/data/cluster.json`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planning import PlannedRinghaul

KEYSPACE = "stock"


@pytest.fixture
def fleet(tmp_path: Path) -> PlannedRinghaul:
    """`ringhaul` with a broker, up to its plan. A plan that is accepted fails the test."""
    return PlannedRinghaul(tmp_path)


@pytest.fixture(scope="session")
def keyspace() -> str:
    return KEYSPACE


@pytest.fixture(scope="session")
def table() -> str:
    """A table with the columns `id int` (the key), `name text` and `total int`."""
    return f"{KEYSPACE}.orders"


@pytest.fixture
def source(fleet: PlannedRinghaul) -> Path:
    path = fleet.cwd / "orders.csv"
    path.write_text("id,name,total\n1,a,10\n")
    return path
