"""Fields with write times and TTLs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producer.plan.field_notes import left_out_notes, shifted_times_notes
from producer.request.load import LoadDraft, check_draft
from ringhaul.errors import UsageError
from ringhaul.ledger.kinds import JobKind
from ringhaul.mapping.language import parse_mapping
from tests.loads import table_schema
from tests.unit.producer.plan.conftest import TABLE, Plan


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
def test_write_times_and_ttls_are_fields_that_need_no_columns(
    plan: Plan, tmp_path: Path, name: str
) -> None:
    # Given a file with both fields, one of which has the name of a column
    fields = ["writetime(n)", "id", "n"]
    if name == "x.csv":
        (tmp_path / name).write_text("writetime(n),id,n\n5,1,60\n")
    elif name == "x.jsonl":
        (tmp_path / name).write_text('{"id": 1}\n{"writetime(n)": 5, "id": 2, "n": 60}\n')
    else:
        pq.write_table(pa.table({field: pa.array([1]) for field in fields}), tmp_path / name)

    # Then they are found, and that one is also loaded into its column unless it is skipped
    both, one = {("id", "id"), ("n", "n")}, {("id", "id")}
    given: list[tuple[dict[str, Any], set[tuple[str, str]]]] = [
        ({}, both),
        ({"mapping": parse_mapping("id=id,n=n")}, both),
        ({"mapping": parse_mapping("id=id")}, one),
        ({"skip_columns": ["n"]}, one),
    ]
    for options, mapped in given:
        (source,) = plan(timestamp_field="writetime(n)", ttl_field="n", **options)
        assert (source.timestamp_field, source.ttl_field) == ("writetime(n)", "n")
        found = {pair for pair in source.mapping if pair[0] in fields}
        assert found == mapped
        assert source.loaded[-2:] == ["writetime(n)", "n"]

    # And a misspelt name, and one field for both, are refused
    with pytest.raises(UsageError, match=r"--ttl-field names field 'idd'.*did you mean 'id'\?"):
        plan(timestamp_field="writetime(n)", ttl_field="idd")
    with pytest.raises(UsageError, match="both name field 'n'"):
        plan(timestamp_field="n", ttl_field="n")


@pytest.mark.parametrize("option", ["timestamp_field", "ttl_field"])
def test_a_field_without_a_name_is_refused(option: str) -> None:
    """An unset shell variable gives an empty name."""
    message = f"--{option.replace('_', '-')} is empty: give the name of a field, or leave it out"
    with pytest.raises(UsageError, match=message):
        check_draft(LoadDraft(keyspace="shop", table="orders", **{option: ""}))


def test_a_field_in_one_file_of_json_lines_is_enough(plan: Plan, tmp_path: Path) -> None:
    # Given files of a writer that omits nulls, one with write times, one with TTLs
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n')
    (tmp_path / "b.jsonl").write_text('no object\n{"id": 2, "at": 5}\n')
    (tmp_path / "c.jsonl").write_text("none here\n")
    (tmp_path / "d.jsonl").write_text('{"id": 2, "left": 5}\n')
    assert len(plan(timestamp_field="at", ttl_field="left")) == 4

    # Then a field that no file has is refused
    with pytest.raises(
        UsageError,
        match=r"a.jsonl and 3 more: in their first records: --ttl-field "
        r"names field 'lefd', .* fields are id, at, left; did you mean 'left'\?",
    ):
        plan(timestamp_field="at", ttl_field="lefd")

    # And a file with a header has all of its fields
    (tmp_path / "e.csv").write_text("id,at,lefd\n1,2,3\n")
    assert len(plan(timestamp_field="at", ttl_field="lefd")) == 5


def test_write_times_can_be_named_by_position_where_fields_have_one(
    plan: Plan, tmp_path: Path
) -> None:
    (tmp_path / "x.csv").write_text("1,a,5\n")
    (source,) = plan(header=False, columns=["id", "note", "at"], timestamp_field="2")
    assert (source.timestamp_field, source.mapping) == ("at", (("id", "id"), ("note", "note")))
    with pytest.raises(UsageError, match="--timestamp-field names field '3', which it does not"):
        plan(header=False, timestamp_field="3")
    (tmp_path / "x.csv").unlink()
    (tmp_path / "x.jsonl").write_text('{"id": 1, "at": 5}\n')
    with pytest.raises(UsageError, match="--timestamp-field names field '1', which it does not"):
        plan(timestamp_field="1")


def test_columns_of_parquet_that_cannot_be_write_times_are_refused(
    plan: Plan, tmp_path: Path
) -> None:
    table = pa.table({"id": [1], "at": [True], "left": pa.array([5], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(UsageError, match="--timestamp-field at: bool does not become a write time"):
        plan(timestamp_field="at", ttl_field="left")
    with pytest.raises(
        UsageError, match=r"--ttl-field left: timestamp\[us\] does not become a TTL"
    ):
        plan(ttl_field="left", skip_columns=("at",))


def test_a_verification_leaves_out_write_times_and_ttls(plan: Plan, tmp_path: Path) -> None:
    names = ["id", "n", "writetime(n)", "ttl(n)", "TTL(note)", "writetime(note)"]
    (tmp_path / "x.csv").write_text(",".join(names) + "\n1,2,3,4,5,6\n")
    with pytest.raises(UsageError, match=r"field 'writetime\(n\)' has no column"):
        plan()
    sources = plan(kind=JobKind.VERIFY)
    assert sources[0].mapping == (("id", "id"), ("n", "n"))
    request = LoadDraft(keyspace="shop", table="orders", kind=JobKind.VERIFY)
    assert left_out_notes(request, sources, TABLE) == [
        "not compared: writetime(n), ttl(n), TTL(note) and 1 more (--times compares write "
        "times and TTLs)"
    ]
    # What is left out by an option needs no note
    given = replace(request, skip_columns=names[2:])
    assert left_out_notes(given, sources, TABLE) == []
    # Any other field is refused, as by a load
    (tmp_path / "x.csv").write_text("id,max(n)\n1,2\n")
    with pytest.raises(UsageError, match=r"field 'max\(n\)' has no column"):
        plan(kind=JobKind.VERIFY)
    # Parquet and JSON Lines as well
    (tmp_path / "x.csv").unlink()
    pq.write_table(pa.table({"id": [1], "ttl(n)": [3]}), tmp_path / "x.parquet")
    assert plan(kind=JobKind.VERIFY)[0].mapping == (("id", "id"),)
    (tmp_path / "x.parquet").unlink()
    (tmp_path / "x.jsonl").write_text('{"id": 1, "ttl(n)": 3}\n')
    source = plan(kind=JobKind.VERIFY)[0]
    assert "ttl(n)" in source.fields and "ttl(n)" not in source.loaded


def test_write_times_that_a_list_shifts_are_named(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,n\n1,2\n")
    (source,) = plan()
    kinds = {"id": "int", "n": "list<int>", "other": "list<int>"}
    table, request = table_schema(kinds, ["id"]), LoadDraft(keyspace="shop", table="orders")
    dated = replace(request, timestamp="5")
    (note,) = shifted_times_notes(dated, [source], table)
    assert note.startswith("write times are not kept exactly: n of shop.orders is a list ")
    by_field = replace(request, timestamp_field="n")
    assert shifted_times_notes(by_field, [source], table) == [note]
    # Without given times, without such a list, or without writing there is nothing to say
    assert shifted_times_notes(request, [source], table) == []
    assert shifted_times_notes(dated, [source], TABLE) == []
    assert shifted_times_notes(replace(dated, kind=JobKind.VERIFY), [source], table) == []
