"""Transforms are tried on the first records of each kind of file, before the job."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from config.settings import Settings
from producer.plan.transforms import plan_transforms
from producer.request.load import LoadDraft
from ringhaul.errors import UsageError
from ringhaul.mapping.language import parse_mapping
from ringhaul.records.job import LoadJob
from ringhaul.sources.find import find_sources
from ringhaul.transform import each_row
from ringhaul.transform.chain import Transform
from tests.heads import dry_run_text, plan_source, with_results
from tests.loads import load_job, table_schema

TABLE = table_schema({"id": "int", "n": "bigint", "note": "text", "tags": "list<int>"}, ["id"])
Plan = Callable[..., LoadJob]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Plans a load of the files of `tmp_path` through functions."""

    def planned(*functions: Any, **options: Any) -> LoadJob:
        names = tuple(f"t:{number}" for number in range(len(functions)))
        request = LoadDraft(keyspace="shop", table="orders", transforms=names, **options)
        files = find_sources([str(tmp_path)], request.dialect, request.file_format)
        sources = [plan_source(request, file, TABLE) for file in files]
        job = load_job(TABLE, *sources, transforms=names, ordinal_first=request.skip_rows)
        transforms = tuple(map(Transform, names, functions))
        return with_results(job, request, transforms)

    return planned


def double(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": batch.column("b"), "id": batch.column("a")})


def test_columns_of_the_result_replace_the_files_fields(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    (tmp_path / "y.csv.gz").write_bytes(gzip.compress(b"a,b\n3,4\n"))
    (tmp_path / "z.jsonl").write_text('{"b": 5}\n{"a": 6, "b": null}\n')
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "zz.parquet")

    job = plan(double)

    for source in job.sources:
        assert source.mapping == (("n", "n"), ("id", "id"))
        assert source.results == ("n", "id")
        assert sorted(source.fields) == ["a", "b"]
    assert LoadJob.from_json(job.to_json()) == job


def test_mapping_and_skipping_apply_to_the_result(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    (source,) = plan(lambda batch: batch, mapping=parse_mapping("a=id,1=note")).sources
    assert source.mapping == (("a", "id"), ("b", "note"))

    def more(batch: pa.RecordBatch) -> pa.RecordBatch:
        return double(batch).append_column("extra", batch.column("a"))

    (source,) = plan(more, skip_columns=("extra",)).sources
    assert (source.mapping, source.results) == (
        (("n", "n"), ("id", "id")), ("n", "id", "extra"),
    )  # fmt: skip
    with pytest.raises(UsageError, match="after t:0: field 'extra' has no column 'extra'"):
        plan(more)
    with pytest.raises(UsageError, match="no field for primary key column 'id'"):
        plan(more, mapping=parse_mapping("n=n"))


def test_a_skipped_record_is_not_tried(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\nin,units\n1,2\n")

    @each_row
    def numbers(row: dict[str, Any]) -> dict[str, Any]:
        return {f"n{row['a']}": int(row["b"]), "id": int(row["a"])}

    with pytest.raises(UsageError, match="has no column 'n1'"):
        plan(numbers, skip_rows=1)
    (source,) = plan(numbers, skip_rows=1, mapping=parse_mapping("id=id,n1=n")).sources
    assert source.results == ("n1", "id")


def test_columns_of_the_result_can_be_write_times_and_ttls(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    (tmp_path / "y.csv").write_text("a,b\n3,4\n")

    def timed(batch: pa.RecordBatch) -> pa.RecordBatch:
        times = pa.array([5] * batch.num_rows, pa.timestamp("us"))
        left = batch.column("b")
        return double(batch).append_column("at", times).append_column("left", left)

    job = plan(timed, timestamp_field="at", ttl_field="3")
    for source in job.sources:
        assert (source.timestamp_field, source.ttl_field) == ("at", "left")
        assert source.mapping == (("n", "n"), ("id", "id"))
    text = dry_run_text(job, 1, (Transform("t:0", timed),))
    assert (
        " at                       (the write time)\n left                     (the TTL)\n" in text
    )
    assert '("n", "id") VALUES (?, ?) USING TIMESTAMP ? AND TTL ?' in text
    assert " timestamps of at; where it is empty from 2023-11-14T22:13:20.000000Z on, 1 us" in text
    assert "not loaded" not in text
    with pytest.raises(UsageError, match=r"give 'at' for the TTL, and timestamp\[us\] does not"):
        plan(timed, timestamp_field="left", ttl_field="at")
    with pytest.raises(UsageError, match="after t:0: --ttl-field names field 'b'"):
        plan(timed, timestamp_field="at", ttl_field="b")


def test_fields_can_be_named(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1,2\n")
    with pytest.raises(UsageError, match="--transform with --no-header needs --columns"):
        plan(double, header=False)
    assert plan(double, header=False, columns=("a", "b")).sources[0].fields == ("a", "b")
    (tmp_path / "x.csv").unlink()
    (tmp_path / "x.jsonl").write_text('{"b": 5}\n')
    with pytest.raises(UsageError, match="no row is left of the first 1 record: t:0: KeyError"):
        plan(double)
    assert plan(double, columns=("a", "b")).sources[0].fields == ("a", "b")


def test_a_function_runs_once_for_each_kind_of_file(plan: Plan, tmp_path: Path) -> None:
    calls: list[int] = []

    def counted(batch: pa.RecordBatch) -> pa.RecordBatch:
        calls.append(batch.num_rows)
        return double(batch)

    for number in range(20):
        (tmp_path / f"{number}.csv").write_text("a,b\n1,2\n")
    (tmp_path / "x.csv").write_text("b,a\n1,2\n3,4\n")
    plan(counted)
    assert sorted(calls) == [1, 2]


def test_a_file_without_records_still_gives_its_columns(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n")
    pq.write_table(pa.table({"a": [1], "b": [2]}).slice(0, 0), tmp_path / "y.parquet")
    for source in plan(double).sources:
        assert source.results == ("n", "id")


def test_the_first_file_with_a_record_is_the_sample_of_its_kind(plan: Plan, tmp_path: Path) -> None:
    for name, text in {"1": "", "2": "", "3": "1,2\n3,4\n", "4": "5,\n"}.items():
        (tmp_path / f"{name}.csv").write_text(f"a,b\n{text}")
    pq.write_table(pa.table({"a": [1], "b": [2]}).slice(0, 0), tmp_path / "5.parquet")
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "6.parquet")
    calls: list[int] = []

    def counted(batch: pa.RecordBatch) -> pa.RecordBatch:
        calls.append(batch.num_rows)
        return double(batch)

    # The columns of a function of rows are unknown until it gets a row
    rows = each_row(lambda row: {"id": row["id"], "n": row["n"]})
    for source in plan(counted, rows).sources:
        assert (source.mapping, source.results) == ((("id", "id"), ("n", "n")), ("id", "n"))
    assert sorted(calls) == [1, 2]


def test_columns_of_functions_of_rows_are_declared_or_those_of_the_first_rows(
    plan: Plan, tmp_path: Path
) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,\n2,x\n3,y\n")
    odd = each_row(lambda row: {"id": row["a"], **({"note": row["b"]} if row["b"] else {})})
    assert plan(odd).sources[0].results == ("id", "note")
    said = each_row(columns=["id", "n", "note"])(lambda row: None)
    assert plan(said).sources[0].results == ("id", "n", "note")
    with pytest.raises(UsageError, match="t:0 leaves out the first 3 records, so its columns"):
        plan(each_row(lambda row: None))
    nothing = lambda batch: batch.slice(0, 0)  # noqa: E731
    assert plan(nothing, said).sources[0].results == ("id", "n", "note")
    assert plan(nothing, double).sources[0].results == ("n", "id")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda batch: batch.to_pydict(), "returned dict, not a pyarrow.RecordBatch"),
        (lambda batch: 1 / 0, "no row is left of the first 1 record: t:0: ZeroDivisionError"),
        (
            lambda batch: pa.RecordBatch.from_pydict({"x": [1]}),
            "after t:0: no column is one of shop.orders (there are x; the table has id, n,",
        ),
        (
            lambda batch: pa.RecordBatch.from_pydict({"id": [1], "n": [b"1"]}),
            "the transforms give 'n' for bigint of shop.orders.n, and binary does not become",
        ),
    ],
)
def test_unusable_transforms_are_refused_before_the_job(
    plan: Plan, tmp_path: Path, function: Any, message: str
) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UsageError) as caught:
        plan(function)
    assert message in str(caught.value)
    assert str(tmp_path / "x.csv") in str(caught.value)


def test_a_field_may_not_be_named_as_the_column_of_records(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,_record\n1,2\n")
    with pytest.raises(UsageError, match="a field is named _record"):
        plan(double)


def test_some_bad_records_at_the_start_are_tolerated(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"a,b\n1\n2,\xff\n3,x\n")
    picky = each_row(lambda row: {"id": int(row["a"]), "n": int(row["b"])})
    with pytest.raises(UsageError, match="no row is left of the first 1 record"):
        plan(picky)
    (tmp_path / "x.csv").write_bytes(b"a,b\n1\n2,\xff\n3,x\n4,4\n")
    assert plan(picky).sources[0].results == ("id", "n")


def test_names_are_checked_against_this_hosts_settings(tmp_path: Path) -> None:
    settings = Settings(layers=(), transform={"allowed": ["ringhaul.transform.examples:starred"]})
    with pytest.raises(UsageError, match="--transform etl: give MODULE:FUNCTION"):
        plan_transforms(["etl"], settings)
    with pytest.raises(UsageError, match=r"transform etl:x on host .* is not allowed"):
        plan_transforms(["etl:x"], settings)
    (found,) = plan_transforms(["ringhaul.transform.examples:starred"], settings)
    assert found.name == "ringhaul.transform.examples:starred"


def test_prints_of_functions_go_to_standard_error(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    (tmp_path / "rh_loud.py").write_text("print('imported')\ndef f(batch): return batch\n")
    settings = Settings(layers=(), transform={"allowed": ["rh_loud:*"], "path": str(tmp_path)})

    def loud(batch: pa.RecordBatch) -> pa.RecordBatch:
        print("called")
        return double(batch)

    plan_transforms(["rh_loud:f"], settings)
    (tmp_path / "rh_loud.py").unlink()
    dry_run_text(plan(loud), 1, (Transform("t:0", loud),))

    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("imported\ncalled\n")


def test_a_dry_run_shows_the_results_of_the_first_records(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\nx,3\n4,5\n6,\n")

    @each_row
    def spread(row: dict[str, Any]) -> Any:
        if row["b"] is None:
            return
        for n in range(2):
            yield {"id": int(row["a"]) * 10 + n, "note": row["b"]}

    job = plan(spread)
    text = dry_run_text(job, 2, (Transform("t:0", spread),))

    assert "through t:0 into shop.orders at LOCAL_QUORUM; nothing was written" in text
    assert "4 records, 4 rows, 1 dropped, 1 rejected" in text
    assert "x.csv:3 transform: t:0: ValueError: invalid literal for int()" in text
    assert "   id=10, note=2\n   id=11, note=2\n   id=40, note=5" in text


def test_a_dry_run_shows_nothing_of_skipped_records(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,junk\n2,b\n3,c\n")
    job = replace(plan(lambda batch: batch, mapping=parse_mapping("a=id,b=note")), ordinal_first=1)
    text = dry_run_text(job, 2, (Transform("t:0", lambda batch: batch),))
    assert "2 records, 2 rows, 0 dropped, 0 rejected" in text
    assert "   a=2, b=b\n   a=3, b=c" in text
    assert "junk" not in text
