"""The sample that a new table is made from: which files, which records, which fields."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producer.plan.column_types import UserTypes
from producer.plan.new_table import Planned
from producer.request.load import LoadDraft
from ringhaul.cql.text_format import TextFormat
from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import SourceEmpty
from ringhaul.mapping.language import parse_mapping
from ringhaul.sources.find import find_sources
from tests.heads import plan_new_table

Plan = Callable[..., Planned]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Plans a table for the files of `tmp_path`."""

    def planned(user_types: UserTypes = (), vectors: bool = True, **options: Any) -> Planned:
        request = LoadDraft(keyspace="shop", table="orders", create_table=True, **options)
        files = find_sources([str(tmp_path)], request.dialect, request.file_format)
        return plan_new_table(request, files, user_types=user_types, vectors=vectors)

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


def test_a_path_of_a_mapping_leads_to_the_type_of_an_inner_value(
    plan: Plan, tmp_path: Path
) -> None:
    rows = [{"id": 1}, {"id": 2, "user": {"age": 7, "name": "x"}}]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    mapped = plan(mapping=parse_mapping("id=id,user.age=age,user.name=name"))
    assert types(mapped) == {"id": "bigint", "age": "bigint", "name": "text"}


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
    with pytest.raises(UsageError, match=r"column 'v': arrays with a null.*--skip-columns"):
        plan()
    # and each way out that the message names leads to a table
    assert types(plan(text=TextFormat(accept=("json-text",)))) == {"id": "bigint", "v": "text"}
    assert types(plan(types={"v": "text"})) == {"id": "bigint", "v": "text"}
    assert types(plan(skip_columns=["v"])) == {"id": "bigint"}


GERMAN = TextFormat(decimal_sep=",", thousands_sep=".", date_formats=("dd.MM.yyyy",))


def test_a_culprit_is_shown_and_a_type_can_be_given(plan: Plan, tmp_path: Path) -> None:
    rows = [f"{n};0{n % 9 + 1}.05.2024;1.{n:03},50\n" for n in range(300)]
    rows[250] = "250;#NV;vielleicht\n"
    (tmp_path / "a.csv").write_text(f"id;am;Umsatz\n{''.join(rows)}")
    german = {"text": GERMAN, "dialect": CsvDialect(delimiter=";")}
    planned = plan(**german)
    assert types(planned) == {"id": "bigint", "am": "text", "umsatz": "text"}
    assert planned.table.reasons["am"] == '"#NV" is not a date'
    assert planned.table.reasons["umsatz"] == '"vielleicht" is not a number'

    planned = plan(types={"Umsatz": "Decimal", "am": "date"}, **german)
    assert types(planned) == {"id": "bigint", "am": "date", "umsatz": "decimal"}
    assert planned.table.reasons["am"] == "as --type says"
    assert "    umsatz decimal," in planned.table.statement
    assert planned.notes[1:] == (
        'warning: 1 sampled value of umsatz would be rejected: cast decimal: "vielleicht" is not a '
        "decimal number",
        'warning: 1 sampled value of am would be rejected: cast date: "#NV" is not a date such as '
        "2024-05-31, nor one that --date-format dd.MM.yyyy reads",
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"umsatz": "decimal"}, "no such column; its columns are id, v"),
        ({"v": "decmal"}, "neither a type of CQL nor of the keyspace; did you mean 'decimal'"),
        ({"v": "counter"}, "no file can be loaded into such a column"),
        ({"v": "list<int"}, "neither a type of CQL"),
        ({"v": "int) WITH x"}, "neither a type of CQL"),
    ],
)
def test_a_type_that_cannot_be_is_refused(
    plan: Plan, tmp_path: Path, given: dict[str, str], message: str
) -> None:
    (tmp_path / "a.csv").write_text("id,v\n1,2\n")
    with pytest.raises(UsageError, match=re.escape(message)):
        plan(types=given)


def test_a_user_defined_type_of_the_keyspace_can_be_given(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "at": {"zip": 8, "city": null}}\n')
    with pytest.raises(UsageError, match="objects with a null"):
        plan()
    types_ = (("address", (("zip", "int"), ("city", "text"))),)
    planned = plan(user_types=types_, types={"at": "frozen< address >"})
    assert types(planned) == {"id": "bigint", "at": "frozen<address>"}
    assert planned.notes == ("types from the first 1 record of 1 file",)


def test_a_type_that_parquet_cannot_become_is_refused(plan: Plan, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "v": [b"x"]}), tmp_path / "a.parquet")
    with pytest.raises(UsageError, match=r"a\.parquet: column 'v': bytes do not become int"):
        plan(types={"v": "int"})
    assert types(plan(types={"id": "varint"})) == {"id": "varint", "v": "blob"}


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_long_record_does_not_end_the_sample(plan: Plan, tmp_path: Path, suffix: str) -> None:
    values = [*("1" for _ in range(101)), "y" * (3 << 20), *("2" for _ in range(2000)), "0.5"]
    with (tmp_path / f"a.{suffix}").open("w") as out:
        out.write("id,n,v\n" if suffix == "csv" else "")
        for number, value in enumerate(values):
            n = "0.5" if number == 1500 else "1"
            line = f'{{"id": {number}, "n": {n}, "v": "{value}"}}\n'
            out.write(line if suffix == "jsonl" else f"{number},{n},{value}\n")
    planned = plan()
    assert types(planned)["n"] == "double"
    assert planned.notes == ("types from the first 2,103 records of 1 file",)


def test_embeddings_become_vectors_where_the_cluster_has_them(plan: Plan, tmp_path: Path) -> None:
    row = [0.5, -0.25] * 192
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": 1, "v": row}) + "\n")
    assert types(plan())["v"] == "vector<float, 384>"
    assert types(plan(vectors=False))["v"] == "frozen<list<double>>"
    (tmp_path / "a.jsonl").unlink()
    uid = "123e4567-e89b-12d3-a456-426614174000"
    columns = {"id": pa.array([uid]), "v": pa.array([row], pa.list_(pa.float32()))}
    pq.write_table(
        pa.table(columns | {"s": pa.array(["x"], pa.large_string())}), tmp_path / "b.parquet"
    )
    planned = plan()
    assert types(planned) == {"id": "uuid", "v": "vector<float, 384>", "s": "text"}
    assert planned.table.reasons["s"] == "strings"
    # Files that differ are one table as long as one type holds both
    columns = {"id": pa.array(["x"]), "v": pa.array([row[:20]], pa.list_(pa.float32()))}
    pq.write_table(pa.table(columns), tmp_path / "c.parquet")
    assert types(plan()) == {"id": "text", "v": "frozen<list<float>>", "s": "text"}
