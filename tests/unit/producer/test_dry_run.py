"""The sample of a dry run is of records that the load would load."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producer import dry_run
from producer.dry_run import dry_run_json, dry_run_text
from producer.plan import plan_source
from producer.plan_sources import LoadRequest
from ringhaul.formats.find import find_sources
from ringhaul.load.job import ORDINAL_END, LoadJob
from tests.loads import load_job, table_schema

TABLE = table_schema({"id": "int", "v": "text"}, ["id"])


def planned(folder: Path, skip: int = 0, most: int | None = None, unit_bytes: int = 40) -> LoadJob:
    request = LoadRequest(keyspace="shop", table="orders")
    sources = [plan_source(request, file, TABLE) for file in find_sources([str(folder)])]
    end = ORDINAL_END if most is None else skip + most
    return load_job(TABLE, *sources, ordinal_first=skip, ordinal_end=end, unit_bytes=unit_bytes)


def sampled(job: LoadJob) -> list[str]:
    """What is said of the samples, without the names of the files."""
    text = dry_run_text(job, 2)
    return [line.split(": ", 1)[1] for line in text.splitlines() if line.startswith(" sample ")]


@pytest.mark.parametrize("unit_bytes", [1, 40, 1 << 20])
@pytest.mark.parametrize("name", ["in.csv", "in.csv.gz"])
def test_records_that_are_passed_over_are_not_in_it(
    tmp_path: Path, name: str, unit_bytes: int
) -> None:
    text = b"id,v\njunk,a\nmore junk,b\n" + b"".join(b"%d,c\n" % n for n in range(10))
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    (tmp_path / "next.csv").write_text("id,v\nbad,d\n12,e\n")

    first, second = sampled(planned(tmp_path, 2, unit_bytes=unit_bytes))

    assert first == "10 records, 0 rejected"
    assert second == "2 records, 1 rejected"
    # and those beyond --max-rows are not, nor are files of which nothing is wanted
    job = planned(tmp_path, 11, 2, unit_bytes=unit_bytes)
    assert sampled(job) == ["1 records, 0 rejected", "1 records, 1 rejected"]
    assert f"{tmp_path}/next.csv:2 id: cast int" in dry_run_text(job, 2)
    assert sampled(planned(tmp_path, 12)) == ["0 records, 0 rejected", "2 records, 1 rejected"]
    assert sampled(planned(tmp_path, 0, 3))[1] == "0 records, 0 rejected"


def test_programs_are_told_the_same(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,v,x\n1,a,?\nno,b,?\n")
    request = LoadRequest(keyspace="shop", table="orders", skip_columns=["x"])
    source = plan_source(request, find_sources([str(tmp_path)])[0], TABLE)
    job = load_job(TABLE, source, unit_bytes=40)

    plan = json.loads(json.dumps(dry_run_json(job, 2)))

    assert {name: plan[name] for name in ("files", "bytes", "units", "worker_processes")} == {
        "files": 1,
        "bytes": 20,
        "units": 1,
        "worker_processes": 2,
    }
    assert plan["mapping"] == [
        {"field": "id", "column": "id", "type": "int", "key": "partition"},
        {"field": "v", "column": "v", "type": "text", "key": None},
    ]
    assert plan["not_loaded"] == ["x"]
    assert f" statement  {plan['statement']}" in dry_run_text(job, 2).splitlines()
    (shown,) = plan["samples"]
    assert (shown["records"], shown["rows"], shown["rejected"]) == (2, 1, 1)
    (problem,) = shown["problems"]
    assert (problem["file"], problem["line"]) == (f"{tmp_path}/in.csv", 3)
    assert (problem["stage"], problem["column"]) == ("cast", "id")
    assert '"no"' in problem["reason"]


def test_it_is_looked_for_behind_a_long_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dry_run, "SAMPLE_BYTES", 64)
    (tmp_path / "in.csv").write_text("id,v\n" + "junk,x\n" * 500 + "1,x\n")
    job = planned(tmp_path, 500, unit_bytes=1 << 20)
    assert sampled(job) == ["1 records, 0 rejected"]
    # but not for ever
    monkeypatch.setattr(dry_run, "SAMPLE_BLOCKS_MAX", 10)
    assert sampled(job) == ["0 records, 0 rejected"]


def test_a_later_row_group_of_parquet(tmp_path: Path) -> None:
    table = pa.table({"id": [None] * 4 + [1, 2], "v": ["x"] * 6})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=2)
    assert sampled(planned(tmp_path, 4)) == ["2 records, 0 rejected"]
    assert sampled(planned(tmp_path, 1)) == ["1 records, 1 rejected"]
    pq.write_table(table.slice(0, 0), tmp_path / "in.parquet")
    assert sampled(planned(tmp_path)) == ["0 records, 0 rejected"]
