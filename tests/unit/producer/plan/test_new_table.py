"""The sample that a new table is made from: which files, which records, which fields."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producer.plan.new_table import Planned, plan_new_table
from producer.request.load import LoadRequest
from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import SourceEmpty
from ringhaul.records.mapping_text import parse_mapping
from ringhaul.sources.find import find_sources

Plan = Callable[..., Planned]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Plans a table for the files of `tmp_path`."""

    def planned(**options: Any) -> Planned:
        request = LoadRequest(keyspace="shop", table="orders", create_table=True, **options)
        return plan_new_table(
            request, find_sources([str(tmp_path)], request.dialect, request.file_format)
        )

    return planned


def types(planned: Planned) -> dict[str, str]:
    return {column.name: column.cql_type for column in planned.table.schema.columns}


def test_the_columns_are_the_fields_of_the_header(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"Id, total,note\n1,2.50,\n2,3.75,x\n"))
    planned = plan()
    assert types(planned) == {"id": "bigint", "total": "decimal", "note": "text"}
    assert planned.table.schema.partition_key == ("id",)
    assert planned.notes == ("types from the first 2 records of 1 file",)


def test_first_middle_and_last_file_are_sampled(plan: Plan, tmp_path: Path) -> None:
    for number, value in enumerate(["1", "x", "2", "y", "0.5"]):
        (tmp_path / f"{number}.csv").write_text(f"id,v\n{number},{value}\n")
    planned = plan()
    assert types(planned) == {"id": "bigint", "v": "double"}
    assert planned.notes == ("types from the first 3 records of 3 of 5 files",)


def test_options_choose_the_fields(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,when,left,note\n1,1700000000000000,60,a\n")
    wanted = {"timestamp_field": "when", "ttl_field": "2", "skip_columns": ["note"]}
    assert types(plan(**wanted)) == {"id": "bigint"}
    mapped = {"mapping": parse_mapping("id=key,3=text")}
    assert types(plan(**mapped)) == {"key": "bigint", "text": "text"}
    assert types(plan(columns=["a", "b", "c", "d"]))["d"] == "text"


def test_skipped_records_do_not_count(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\njunk\nmore junk\n3\n4\n")
    assert types(plan()) == {"id": "text"}
    assert types(plan(skip_rows=2)) == {"id": "bigint"}
    with pytest.raises(SourceEmpty, match="--create-table needs records"):
        plan(skip_rows=4)


def test_json_names_come_in_the_order_of_the_records(plan: Plan, tmp_path: Path) -> None:
    rows = [{"id": "a", "n": 1}, {"tags": ["x"], "id": "b"}, {"n": 2.5, "id": None}]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows) + "no json\n")
    planned = plan()
    assert types(planned) == {"id": "text", "n": "double", "tags": "frozen<list<text>>"}
    assert planned.notes[1] == (
        "warning: 1 sampled record without a value for the primary key would be rejected"
    )


def test_texts_for_null_in_json_say_nothing_of_a_type(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "n": "N/A"}\n{"id": 2, "n": 7}\n')
    assert types(plan()) == {"id": "bigint", "n": "text"}
    assert types(plan(dialect=CsvDialect(null_strings=("N/A",)))) == {"id": "bigint", "n": "bigint"}


def test_parquet_keeps_its_types_and_files_widen_each_other(plan: Plan, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
    second = {"id": pa.array([1], pa.int64()), "v": pa.array([1.5], pa.float32())}
    pq.write_table(pa.table(second), tmp_path / "b.parquet")
    planned = plan()
    assert types(planned) == {"id": "bigint", "v": "float"}
    assert planned.notes == ("types as in 2 files",)


def test_files_that_disagree_are_refused(plan: Plan, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": pa.array(["x"])}), tmp_path / "b.parquet")
    with pytest.raises(
        UsageError, match=r"b\.parquet: column 'id' would be text, .* earlier file int"
    ):
        plan()


def test_a_repeated_key_is_warned_of(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("region,n\nEU,1\nEU,2\nUS,3\nEU,4\n")
    assert (
        plan()
        .notes[1]
        .startswith("warning: 2 sampled records with a primary key that another one has")
    )
    assert len(plan(primary_key="region,n").notes) == 1


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a\n1\n", {"skip_columns": ["a"]}, "every field is left out"),
        ("a,a\n1,2\n", {}, "names 2 fields"),
        ("a;b\n1;2\n", {}, "--delimiter ';'"),
        ("a,writetime(a)\n1,2\n", {}, "load takes --timestamp-field 'writetime"),
        ("a\n", {}, "needs records, and there are none"),
        ("a\n1\n", {"primary_key": "b"}, "--primary-key names 'b'"),
    ],
)
def test_files_that_show_no_table_are_refused(
    plan: Plan, tmp_path: Path, text: str, options: dict[str, Any], message: str
) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(UsageError, match=message):
        plan(**options)


def test_json_that_no_type_holds_names_the_column(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "v": [1, null]}\n')
    with pytest.raises(UsageError, match=r"column 'v': a null in an array.*--skip-columns"):
        plan()
    assert types(plan(skip_columns=["v"])) == {"id": "bigint"}
