"""Names of fields: in headers and in records, and the columns that they fill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producer.plan.field_notes import case_notes
from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.mapping.language import parse_mapping
from tests.unit.producer.plan.conftest import Plan


def test_columns_replace_unusable_names(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(",n,n\n0,1,2\n")  # pandas writes an index like this
    with pytest.raises(UsageError, match=r"field 1 of 3 has no name; .* --columns"):
        plan()
    (source,) = plan(columns=["id", "n", "note"])
    assert source.fields == ("id", "n", "note")
    assert (source.start_offset_bytes, source.start_line) == (5, 2)


def test_names_of_json_lines_in_another_encoding(plan: Plan, tmp_path: Path) -> None:
    # Given lines that each hold invalid UTF-8
    text = '{"id": 1, "note": "café", "at": 5}\n{"id": 2, "né": 1}\n'
    (tmp_path / "x.jsonl").write_bytes(text.encode("latin-1"))
    dialect = CsvDialect(encoding="latin-1")
    # Then their names are found all the same
    (source,) = plan(timestamp_field="at", dialect=dialect)
    assert source.timestamp_field == "at"
    (source,) = plan(transforms=("shop:clean",), dialect=dialect)
    assert source.fields == ("id", "note", "at", "né")
    (tmp_path / "x.jsonl").write_bytes('{"né": 1}\n'.encode("latin-1"))
    with pytest.raises(UsageError, match=r"the first record names no column .*it has né"):
        plan(dialect=dialect)


def test_unneeded_names_are_not_checked(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(",n,a,a\n0,1,2,3\n")
    (source,) = plan(mapping=parse_mapping("0=id,n=n"))
    assert source.mapping == (("", "id"), ("n", "n"))
    with pytest.raises(UsageError, match="they have one name: name all fields by --columns"):
        plan(mapping=parse_mapping("2=id"))
    (tmp_path / "x.csv").write_text("id,n,a,a\n0,1,2,3\n")
    (source,) = plan(skip_columns=["a"])
    assert source.mapping == (("id", "id"), ("n", "n"))
    with pytest.raises(UsageError, match="'a' names 2 fields"):
        plan()
    with pytest.raises(UsageError, match="'a' names 2 fields"):
        plan(transforms=["m:f"], skip_columns=["a"])  # columns of the transform's result


@pytest.mark.parametrize(
    ("name", "header", "spelt"),
    [("x.tsv", "id\tn", "\\t"), ("x.csv", "id;n;note", ";"), ("x.txt", "id|n", "|")],
)
def test_a_header_of_one_field_suggests_another_delimiter(
    plan: Plan, tmp_path: Path, name: str, header: str, spelt: str
) -> None:
    (tmp_path / name).write_text(f"{header}\n{header}\n")
    mapped, named = {"mapping": parse_mapping("id=id")}, {"columns": ["id", "n"]}
    options: list[dict[str, Any]] = [{}, mapped, named]
    for given in options:
        with pytest.raises(UsageError) as refusal:
            plan(**given)
        assert f"give --delimiter '{spelt}'" in str(refusal.value)
    dialect = CsvDialect(delimiter=spelt)
    assert plan(dialect=dialect)[0].mapping[:2] == (("id", "id"), ("n", "n"))
    # If the user says that it is one field, it is accepted.
    assert plan(columns=["id"])[0].fields == ("id",)
    assert plan(mapping=parse_mapping("0=id"))[0].fields == (header,)
    assert plan(transforms=["m:f"])[0].fields == (header,)


def test_commas_in_a_header_with_another_delimiter_are_reported(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,n\n1,2\n")
    with pytest.raises(UsageError, match="give --delimiter ','"):
        plan(dialect=CsvDialect(delimiter=";"))


def test_names_in_another_case_fill_their_columns(plan: Plan, tmp_path: Path) -> None:
    pairs = (("ID", "id"), ("Note", "note"))
    (tmp_path / "x.csv").write_text("ID,Note\n1,a\n")
    assert plan()[0].mapping == pairs
    assert case_notes(plan()) == ["field ID is loaded into column id, Note loaded into note"]
    assert plan(columns=["id", "note"])[0].mapping == (("id", "id"), ("note", "note"))
    assert case_notes(plan(columns=["id", "note"])) == []
    (tmp_path / "x.csv").unlink()
    pq.write_table(pa.table({"ID": [1], "Note": ["a"]}), tmp_path / "x.parquet")
    assert plan()[0].mapping == pairs
    (tmp_path / "x.parquet").unlink()
    # JSON Lines: as the first records spell them, those that lack a member, too.
    (tmp_path / "x.jsonl").write_text('{"ID": 1}\n{"ID": 2, "Note": "a"}\n')
    source = plan()[0]
    assert {pair for pair in source.mapping if pair[0] != pair[1]} == {*pairs}
    assert not {"id", "note"} & {*source.fields}


def test_of_members_in_both_cases_only_the_exact_one_is_loaded(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"id": 1, "Note": "a"}\n{"id": 2, "note": "a"}\n')
    assert ("note", "note") in plan()[0].mapping
    assert case_notes(plan()) == []


def test_a_mapped_field_that_no_record_has_is_refused_if_it_resembles_another(
    plan: Plan, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "total": 5}\n')
    (tmp_path / "b.jsonl").write_text('{"id": 2, "total": 5, "rare": 7}\n')
    with pytest.raises(
        UsageError,
        match=r"a.jsonl and 1 more: in their first records no field is named 'Total' "
        r"\(--mapping\); did you mean 'total'\? If not, leave that one out by --skip-columns",
    ):
        plan(mapping=parse_mapping("id=id,Total=n"))
    # A field that some file has, or that resembles no unmapped field, may be absent, as null
    assert len(plan(mapping=parse_mapping("id=id,rare=n"))) == 2
    assert len(plan(mapping=parse_mapping("id=id,x=n"))) == 2
    assert len(plan(mapping=parse_mapping("id=id,Total=n"), skip_columns=["total"])) == 2
