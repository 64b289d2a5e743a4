"""A unit stops as soon as it has more rejects than its job allows."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from ringhaul.errors import TooManyRejects
from ringhaul.load.run import run_load_unit
from ringhaul.load.write import RequestBounds, Target
from ringhaul.records.account import UnitHooks, UnitOutcome
from ringhaul.records.rejects import unpack_rejects
from ringhaul.records.unit import TO_THE_END, LoadUnit
from tests.integration.load.conftest import Ticks
from tests.integration.load.pipeline_client import KEYSPACE, PREPARED, Client
from tests.loads import load_job, load_source, table_schema

TABLE = table_schema({"id": "bigint", "v": "text"}, ["id"])
RECORDS = 20_000
BLOCK_BYTES = 4096


def run(client: Client, path: Path, rejects_max: int) -> tuple[UnitOutcome, Ticks]:
    """Load a whole compressed file, which is one unit."""
    size_bytes = path.stat().st_size
    source = load_source(["id", "v"], path=str(path), size_bytes=size_bytes, whole=True)
    ticks = Ticks()
    outcome = run_load_unit(
        LoadUnit(0, 0, TO_THE_END, 0, 1, -1),
        load_job(TABLE, source, block_bytes=BLOCK_BYTES),
        Target(client.session, client.plane, PREPARED, KEYSPACE),
        RequestBounds(),
        UnitHooks(tick=ticks, rejects_max=rejects_max),
    )
    return outcome, ticks


@pytest.fixture
def semicolons(tmp_path: Path) -> Path:
    """A file with another delimiter than the job's, so that every record is bad."""
    path = tmp_path / "in.csv.gz"
    path.write_bytes(gzip.compress(b"".join(b"%d;v\n" % i for i in range(RECORDS))))
    return path


def test_a_unit_stops_at_the_block_after_one_reject_too_many(
    client: Client, semicolons: Path
) -> None:
    with pytest.raises(TooManyRejects) as stopped:
        run(client, semicolons, rejects_max=1000)
    many = stopped.value
    # Then it has the rejects of the blocks so far, and read no more of the file
    found = list(unpack_rejects(many.rejects_blob))
    assert 1000 < many.rejected == len(found) < 1000 + BLOCK_BYTES // 4
    assert [r.line for r in found] == list(range(1, many.rejected + 1))
    assert many.input_bytes == found[-1].offset + found[-1].length + 1
    assert many.rows == 0


@pytest.mark.parametrize("rejects_max", [-1, RECORDS])
def test_as_many_rejects_as_allowed_do_not_stop_a_unit(
    client: Client, semicolons: Path, rejects_max: int
) -> None:
    outcome, _ = run(client, semicolons, rejects_max)
    assert (outcome.records, outcome.rejected) == (RECORDS, RECORDS)


def test_one_reject_too_many_in_the_last_block_completes_the_unit(
    client: Client, tmp_path: Path
) -> None:
    # Given a unit that is read to its end: its commit stops the job, and it never runs again
    path = tmp_path / "in.csv.gz"
    path.write_bytes(gzip.compress(b"x;1\n" * 5))
    outcome, _ = run(client, path, rejects_max=0)
    assert (outcome.records, outcome.rejected) == (5, 5)
