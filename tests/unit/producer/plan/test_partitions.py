"""Values in the names of folders become those of columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producer.plan.partitions import partition_notes
from producer.request.load import LoadDraft, check_draft
from ringhaul.errors import UsageError
from ringhaul.ledger.kinds import JobKind
from ringhaul.mapping.language import parse_mapping
from ringhaul.records.job import LoadSource
from ringhaul.sources.find import find_sources
from tests.heads import plan_sources
from tests.loads import table_schema

TYPES = {"id": "int", "year": "int", "region": "text", "note": "text"}
TABLE = table_schema(TYPES, ["id", "year"])


def plan(folder: Path, **options: Any) -> list[LoadSource]:
    known: dict[str, Any] = {"partitioned": True} | options
    request = LoadDraft(keyspace="shop", table="orders", **known)
    check_draft(request)
    found = plan_sources(request, find_sources([str(folder)], request.dialect), TABLE)
    return [source for source in found if source is not None]


def put(path: Path, text: str = "id,note\n1,x\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_each_file_has_the_values_of_its_folders(tmp_path: Path) -> None:
    put(tmp_path / "year=2023" / "region=it's%2Fn" / "a.csv")
    put(tmp_path / "year=2024" / "region=__HIVE_DEFAULT_PARTITION__" / "b.csv")
    first, second = plan(tmp_path)
    assert first.constants == (("year", "2023"), ("region", "it's/n"))
    assert first.mapping == (("id", "id"), ("note", "note"))
    assert second.constants == (("year", "2024"),), "null is left as it is"
    assert plan(tmp_path, nulls="tombstone")[1].filled == (("region", "null"),)


@pytest.mark.parametrize("form", ["jsonl", "parquet", "no header"])
def test_all_formats(tmp_path: Path, form: str) -> None:
    path = tmp_path / "Year=7" / f"a.{'csv' if form == 'no header' else form}"
    put(path, '{"id": 1, "note": "x"}\n' if form == "jsonl" else "1,x,north\n")
    if form == "parquet":
        pq.write_table(pa.table({"id": [1], "note": ["x"]}), path)
    (source,) = plan(tmp_path, header=form != "no header")
    assert source.constants == (("year", "7"),), "names match as CQL's do"
    if form == "no header":
        assert source.fields == ("id", "region", "note")


def test_options_about_fields_apply(tmp_path: Path) -> None:
    put(tmp_path / "host=a" / "year=2023" / "a.csv", "number,region\n1,x\n")
    mapping = parse_mapping("number=id,*=*")
    (source,) = plan(tmp_path, mapping=mapping, skip_columns=["host"])
    assert source.constants == (("year", "2023"),)
    assert source.mapping == (("number", "id"), ("region", "region"))


def test_the_folder_s_value_counts_where_the_file_has_the_column_too(tmp_path: Path) -> None:
    put(tmp_path / "year=2023" / "a.csv", "id,year\n1,1999\n")
    (source,) = plan(tmp_path)
    assert (source.constants, source.mapping) == ((("year", "2023"),), (("id", "id"),))


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("yaer=2023", "names no column of shop.orders; leave it out with --skip-columns yaer; did"),
        ("year=__HIVE_DEFAULT_PARTITION__", "makes year null, which is in the primary key"),
        ("year=May", "'May'=year.*not a whole number"),
        ("year=%FF", "is not UTF-8"),
        ("other", "year"),
    ],
)
def test_what_cannot_be_loaded_is_refused(tmp_path: Path, folder: str, why: str) -> None:
    put(tmp_path / folder / "a.csv")
    with pytest.raises(UsageError, match=why):
        plan(tmp_path)


def found(folder: Path, **options: Any) -> tuple[list[LoadSource], str]:
    """What is planned without the option, and the lines that say so."""
    sources = plan(folder, partitioned=False, **options)
    request = LoadDraft(keyspace="shop", table="orders", **options)
    return sources, "\n".join(note.text for note in partition_notes(request, sources, TABLE))


def test_a_key_column_that_files_lack_is_found_in_the_names_of_folders(tmp_path: Path) -> None:
    put(tmp_path / "job=7" / "year=2023" / "a.csv")
    put(tmp_path / "job=7" / "year=2024" / "b.csv")
    put(tmp_path / "job=7" / "year=2024" / "c.csv", "id,year,note\n1,1999,x\n")
    sources, notes = found(tmp_path)
    assert [source.constants for source in sources] == [
        (("year", "2023"),),
        (("year", "2024"),),
        (),  # the file has it itself
    ]
    assert sources[2].mapping == (("id", "id"), ("year", "year"), ("note", "note"))
    assert notes == (
        "year is taken from the names of folders, as --hive-partitioning does: the files have no "
        "such field"
    )


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "no header", "columns"])
def test_no_column_is_silently_null(tmp_path: Path, form: str) -> None:
    # Given a column that is not in the key, whose values only folders have
    suffix = form if form in ("jsonl", "parquet") else "csv"
    records = {"jsonl": '{"id": 1, "year": 2, "note": "x"}\n', "csv": "id,year,note\n1,2,x\n"}
    for region in ("north", "it's%20s", "__HIVE_DEFAULT_PARTITION__"):
        path = put(tmp_path / f"Region={region}" / f"a.{suffix}", records.get(form, "1,2,x\n"))
        if form == "parquet":
            pq.write_table(pa.table({"id": [1], "year": [2], "note": ["x"]}), path)
    options: dict[str, Any] = {"header": form not in ("no header", "columns")}
    if form == "columns":
        options["columns"] = ["id", "year", "note"]
    sources, notes = found(tmp_path, **options)
    constants = [source.constants for source in sources]
    assert constants == [(), (("region", "it's s"),), (("region", "north"),)]
    pairs = (("id", "id"), ("year", "year"), ("note", "note"))
    assert [source.mapping for source in sources[1:]] == [pairs, pairs]
    assert notes == (
        "region is taken from the names of folders, as --hive-partitioning does: the files have no "
        "such field. --skip-columns region leaves it out"
    )
    sources, _ = found(tmp_path, nulls="tombstone", **options)
    assert (sources[0].mapping, sources[0].filled) == (pairs, (("region", "null"),))
    # A verification reads the same
    assert found(tmp_path, kind=JobKind.VERIFY, **options)[0][1].constants == constants[1]


def test_what_the_user_says_counts(tmp_path: Path) -> None:
    put(tmp_path / "year=2023" / "region=north" / "a.csv")
    sources, notes = found(tmp_path, skip_columns=["region"])
    assert (sources[0].constants, notes.count("region")) == ((("year", "2023"),), 0)
    mapping = parse_mapping("id=id, note=region, *=*")
    sources, notes = found(tmp_path, mapping=mapping)
    assert sources[0].constants == (("year", "2023"),)
    assert sources[0].mapping == (("id", "id"), ("note", "region"))
    # A mapping that lists what is loaded is kept, and a line says what it leaves out.
    put(tmp_path / "b" / "region=north" / "b.csv", "id,year\n1,2\n")
    sources, notes = found(tmp_path / "b", mapping=parse_mapping("id=id, year=year"))
    assert sources[0].constants == ()
    assert notes == (
        "warning: region is not loaded, though names of folders have values: --hive-partitioning "
        "takes them"
    )
    with pytest.raises(UsageError, match="; --hive-partitioning takes year, region from the names"):
        found(tmp_path / "year=2023", mapping=parse_mapping("id=id"))


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("year=May", "'May'=year.*not a whole number"),
        ("year=__HIVE_DEFAULT_PARTITION__", "makes year null, which is in the primary key"),
    ],
)
def test_a_found_value_that_cannot_be_loaded_is_refused(
    tmp_path: Path, folder: str, why: str
) -> None:
    put(tmp_path / folder / "a.csv")
    with pytest.raises(UsageError, match=why):
        found(tmp_path)


def test_a_folder_that_names_no_column_changes_nothing(tmp_path: Path) -> None:
    put(tmp_path / "run=5" / "=x" / "a.csv", "id,year,note\n1,2,x\n")
    sources, notes = found(tmp_path)
    assert (sources[0].constants, notes) == ((), "")


def test_a_new_table_has_no_column_for_folders_and_a_line_says_so(tmp_path: Path) -> None:
    put(tmp_path / "zone=eu" / "a.csv", "id,year\n1,2\n")
    _, notes = found(tmp_path, create_table=True)
    assert notes == (
        "warning: zone is not loaded, though names of folders have values: create the table with "
        "such columns first, without --create-table"
    )


def test_records_without_a_header_have_all_columns_or_none_of_the_folders(tmp_path: Path) -> None:
    put(tmp_path / "year=2023" / "a.csv", "1,2,north,x\n")
    put(tmp_path / "year=2023" / "b.csv", "1,north,x\n")
    sources, _ = found(tmp_path, header=False)
    assert [source.constants for source in sources] == [(), (("year", "2023"),)]
    assert [len(source.fields) for source in sources] == [4, 3]


@pytest.mark.parametrize("options", [{"transforms": ("a:b",)}, {"create_table": True}])
def test_it_is_not_combined_with_what_changes_columns(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="--hive-partitioning gives columns of the table"):
        check_draft(LoadDraft(keyspace="k", table="t", partitioned=True, **options))
