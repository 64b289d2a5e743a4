"""A dry run samples records that the load would load."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producer.plan import dry_run, unit_count
from producer.plan.dry_run import dry_run_code
from producer.plan.sources import with_empty
from producer.plan.units import split_sources
from producer.request.load import LoadDraft
from producer.text import count_text
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.records.job import ORDINAL_END, LoadJob
from ringhaul.records.reading import Opener
from ringhaul.records.unit import LoadUnit
from ringhaul.sources.find import find_sources
from tests.heads import dry_run_json, dry_run_text, plan_source, plan_sources
from tests.loads import load_job, table_schema

TABLE = table_schema({"id": "int", "v": "text"}, ["id"])


def planned(folder: Path, skip: int = 0, most: int | None = None, unit_bytes: int = 40) -> LoadJob:
    request = LoadDraft(keyspace="shop", table="orders")
    sources = [plan_source(request, file, TABLE) for file in find_sources([str(folder)])]
    end = ORDINAL_END if most is None else skip + most
    return load_job(TABLE, *sources, ordinal_first=skip, ordinal_end=end, unit_bytes=unit_bytes)


def sampled(job: LoadJob) -> list[str]:
    """The lines about the samples, without file names."""
    text = dry_run_text(job, 2)
    return [line.split(": ", 1)[1] for line in text.splitlines() if line.startswith(" sample ")]


@pytest.mark.parametrize("unit_bytes", [1, 40, 1 << 20])
@pytest.mark.parametrize("name", ["in.csv", "in.csv.gz"])
def test_skipped_records_are_not_in_the_sample(tmp_path: Path, name: str, unit_bytes: int) -> None:
    text = b"id,v\njunk,a\nmore junk,b\n" + b"".join(b"%d,c\n" % n for n in range(10))
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    (tmp_path / "next.csv").write_text("id,v\nbad,d\n12,e\n")

    first, second = sampled(planned(tmp_path, 2, unit_bytes=unit_bytes))

    assert first == "10 records, 0 rejected"
    assert second == "2 records, 1 rejected"
    # nor are those beyond --max-rows, nor files without a wanted record
    job = planned(tmp_path, 11, 2, unit_bytes=unit_bytes)
    assert sampled(job) == ["1 record, 0 rejected", "1 record, 1 rejected"]
    assert f"{tmp_path}/next.csv:2 id: cast int" in dry_run_text(job, 2)
    assert sampled(planned(tmp_path, 12)) == ["0 records, 0 rejected", "2 records, 1 rejected"]
    assert sampled(planned(tmp_path, 0, 3))[1] == "0 records, 0 rejected"


def test_json_has_the_same_plan(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,v,x\n1,a,?\nno,b,?\n")
    request = LoadDraft(keyspace="shop", table="orders", skip_columns=["x"])
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


@pytest.mark.parametrize(
    ("text", "limit", "code"),
    [
        ("1,a\n", "0", 0),
        ("1,a\nno,b\n", "1", 0),
        ("1,a\nno,b\n", "0", 3),
        ("no,b\n", "1000", 1),
        ("no,b\n" * 1001, "1000", 3),
        ("no,b\n" * 1001 + "1,a\n", "1000", 3),
        ("no,b\n" * 1001, "-1", 1),
        ("no,b\n" * 1001, "10%", 3),
        ("", "1000", 0),
    ],
)
def test_the_exit_code_says_whether_the_load_would_do(
    tmp_path: Path, text: str, limit: str, code: int
) -> None:
    (tmp_path / "in.csv").write_text(f"id,v\n{text}")
    plan = dry_run_json(planned(tmp_path), 1)
    assert dry_run_code(plan, ErrorLimit.parse(limit)) == code


def test_reasons_are_grouped_by_column(tmp_path: Path) -> None:
    rows = "".join(f"x{n},{n}\n{n},{2**70 + n}\n\n" for n in range(500))
    (tmp_path / "in.csv").write_text(f"id,n\n{rows}1,2,3\n")
    request = LoadDraft(keyspace="shop", table="orders")
    numbers = table_schema({"id": "int", "n": "int"}, ["id"])
    source = plan_source(request, find_sources([str(tmp_path)])[0], numbers)
    (shown,) = dry_run_json(load_job(numbers, source), 1)["samples"]
    assert [(one["column"], one["stage"], one["count"]) for one in shown["problems"]] == [
        ("id", "cast", 500), ("n", "cast", 500), (None, "parse", 1)
    ]  # fmt: skip


def test_the_sample_counts_what_the_load_will_reject(tmp_path: Path) -> None:
    # Given a file with seven bad records, and a quote that is never closed
    bad = "".join(f"no{n},b\n" for n in range(7))
    (tmp_path / "in.csv").write_text(f'id,v\n1,a\n{bad}2,"never closed\n3,c\n')
    job = planned(tmp_path, unit_bytes=1 << 20)
    lines = dry_run_text(job, 2).splitlines()
    assert sampled(job) == ["10 records, 8 rejected"]
    # Each reason is there once, over the whole sample
    problem = f'   {tmp_path}/in.csv:3 id: cast int: "no0" is not a whole number'
    assert lines[-3:-1] == [problem, "     and 6 more records for this reason"]
    assert lines[-1].startswith(f"   {tmp_path}/in.csv:10 split: ")
    (shown,) = dry_run_json(job, 2)["samples"]
    assert [problem["count"] for problem in shown["problems"]] == [7, 1]
    # The quote divides the file into three units
    size = (tmp_path / "in.csv").stat().st_size
    assert any(f" 3 units of about {size // 3} bytes for " in line for line in lines)
    # Sizes and times are those that people read
    (tmp_path / "in.csv").write_text("id,v\n1,a\n")
    lines = dry_run_text(planned(tmp_path, unit_bytes=1 << 20), 2).splitlines()
    assert any(line.startswith(" plan       1 unit of 9 bytes for ") for line in lines)
    (moment,) = [line for line in lines if line.startswith(" timestamps ")]
    assert re.fullmatch(
        r" timestamps from \d{4}-\d\d-\d\dT[\d:.]{15}Z on, 1 us more for each record", moment
    )
    far = dry_run_text(replace(planned(tmp_path), base_us=2**62), 2)
    assert f" timestamps from {2**62} us on, " in far


def test_a_sample_is_of_some_size_only(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,v\n" + "1,x\n" * 700_000)
    (shown,) = dry_run_json(planned(tmp_path, unit_bytes=1 << 20), 2)["samples"]
    assert 200_000 < shown["records"] < 300_000


def test_the_sample_may_follow_many_skipped_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dry_run, "SAMPLE_BYTES", 64)
    (tmp_path / "in.csv").write_text("id,v\n" + "junk,x\n" * 500 + "1,x\n")
    job = planned(tmp_path, 500, unit_bytes=1 << 20)
    assert sampled(job) == ["1 record, 0 rejected"]
    # but the search is bounded
    monkeypatch.setattr(dry_run, "SAMPLE_BLOCKS_MAX", 10)
    assert sampled(job) == ["0 records, 0 rejected"]


def test_parts_without_records_are_skipped_as_by_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given parts of which the first is empty, and more wanted records than are counted
    (tmp_path / "part-0.csv").write_text("")
    (tmp_path / "part-1.csv").write_text("id,v\n" + "1,x\n" * 10_000)
    monkeypatch.setattr(unit_count, "READ_BYTES_MAX", 1 << 12)
    monkeypatch.setattr("ringhaul.formats.split.SPLIT_CHUNK_BYTES", 1 << 10)
    request = LoadDraft(keyspace="shop", table="orders", max_rows=5000)
    files = find_sources([str(tmp_path)])
    found = plan_sources(request, files, TABLE)
    sources = with_empty(request, files, found, [source for source in found if source])
    job = load_job(TABLE, *sources, ordinal_end=5000, unit_bytes=1000)
    plan = dry_run_json(job, 2)
    assert plan["units_more"]
    assert plan["units"] <= 25


def test_the_sample_may_be_in_a_later_row_group_of_parquet(tmp_path: Path) -> None:
    table = pa.table({"id": [None] * 4 + [1, 2], "v": ["x"] * 6})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=2)
    assert sampled(planned(tmp_path, 4)) == ["2 records, 0 rejected"]
    assert sampled(planned(tmp_path, 1)) == ["1 record, 1 rejected"]
    pq.write_table(table.slice(0, 0), tmp_path / "in.parquet")
    assert sampled(planned(tmp_path)) == ["0 records, 0 rejected"]


def lines_of(*names: str) -> list[tuple[str, bytes]]:
    """Files of a header and 10,000 records of 10 bytes each."""
    return [(name, b"id,v\n" + b"%07d,x\n" * 10_000 % tuple(range(10_000))) for name in names]


@pytest.mark.parametrize(
    ("files", "skip", "most", "units", "first_sample"),
    [
        (lines_of("a.csv"), 0, None, 100, "10,000 records"),
        (lines_of("a.csv", "b.csv", "c.csv"), 0, None, 300, "10,000 records"),
        # A compressed file is one unit, however many records it holds
        ([("a.csv.gz", gzip.compress(lines_of("a")[0][1])), *lines_of("b.csv")], 0, None, 101,
         "10,000 records"),
        # Only wanted records count
        (lines_of("a.csv", "b.csv"), 0, 12_000, 120, "10,000 records"),
        (lines_of("a.csv"), 9_990, 10, 1, "10 records"),
    ],
    ids=["one", "more", "compressed", "most", "skip"],
)  # fmt: skip
def test_units_beyond_a_sample_are_estimated_from_sizes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: list[tuple[str, bytes]],
    skip: int,
    most: int | None,
    units: int,
    first_sample: str,
) -> None:
    for name, data in files:
        (tmp_path / name).write_bytes(data)
    job = planned(tmp_path, skip, most, unit_bytes=1000)
    # Files that are read to the end have their units counted
    exact = dry_run_json(job, 2)
    assert not exact["units_more"]
    assert abs(exact["units"] - units) <= 2

    # If that would take long, the number is estimated, and the rest of the plan is the same
    monkeypatch.setattr(unit_count, "READ_BYTES_MAX", 1 << 14)
    monkeypatch.setattr("ringhaul.formats.split.SPLIT_CHUNK_BYTES", 1 << 12)
    read: list[int] = []
    monkeypatch.setattr(unit_count, "split_sources", watched(read))
    about = dry_run_json(job, 2)
    assert sum(read) <= (1 << 14) + (1 << 16)
    assert about["units_more"]
    assert abs(about["units"] - units) <= 2
    counted = count_text(about["units"], "unit")
    assert f" plan       about {counted} of about " in dry_run_text(job, 2)
    assert sampled(job)[0].startswith(first_sample)
    # except for the wanted records of later files, whose record numbers are unknown
    if most is not None:
        about["samples"], exact["samples"] = about["samples"][:1], exact["samples"][:1]
    assert {**about, "units": 0, "units_more": 0} == {**exact, "units": 0, "units_more": 0}


def watched(read: list[int]) -> Callable[..., Iterator[LoadUnit]]:
    def split(
        job: LoadJob, *, on_read: Callable[[int], None], opener: Opener
    ) -> Iterator[LoadUnit]:
        def both(more_bytes: int) -> None:
            read.append(more_bytes)
            on_read(more_bytes)

        return split_sources(job, on_read=both, opener=opener)

    return split


def test_row_groups_beyond_those_that_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"id": range(1000), "v": ["x"] * 1000})
    for name in ("a", "b", "c"):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=100)
    job = planned(tmp_path)
    assert (dry_run_json(job, 2)["units"], dry_run_json(job, 2)["units_more"]) == (30, False)
    monkeypatch.setattr(unit_count, "COUNTED_MAX", 12)
    assert dry_run_json(job, 2)["units_more"]
    # The footers and indexes of such small groups are as large as the groups.
    assert 12 < dry_run_json(job, 2)["units"] < 300
    monkeypatch.setattr(unit_count, "COUNTED_MAX", 30)
    assert not dry_run_json(job, 2)["units_more"]


def test_a_write_time_that_is_a_column_too_is_read_once(tmp_path: Path) -> None:
    table = pa.table({"v": ["x", "y"], "id": pa.array([1, 2**40])})
    pq.write_table(table, tmp_path / "in.parquet")
    request = LoadDraft(keyspace="shop", table="orders", timestamp_field="id")
    source = plan_source(request, find_sources([str(tmp_path)])[0], TABLE)
    plan = dry_run_json(load_job(TABLE, source), 2)
    assert plan["timestamp_field"] == "id"
    assert [pair["column"] for pair in plan["mapping"]] == ["v", "id"]
    (shown,) = plan["samples"]
    assert (shown["rows"], [problem["column"] for problem in shown["problems"]]) == (1, ["id"])
