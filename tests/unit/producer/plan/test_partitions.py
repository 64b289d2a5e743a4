"""Values in the names of folders become those of columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producer.plan.sources import plan_sources
from producer.request.load import LoadRequest, check_request
from ringhaul.errors import UsageError
from ringhaul.records.job import LoadSource
from ringhaul.records.mapping_text import parse_mapping
from ringhaul.sources.find import find_sources
from tests.loads import table_schema

TYPES = {"id": "int", "year": "int", "region": "text", "note": "text"}
TABLE = table_schema(TYPES, ["id", "year"])


def plan(folder: Path, **options: Any) -> list[LoadSource]:
    known: dict[str, Any] = {"partitioned": True} | options
    request = LoadRequest(keyspace="shop", table="orders", **known)
    check_request(request)
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


def test_without_the_option_a_message_names_it(tmp_path: Path) -> None:
    put(tmp_path / "year=2023" / "a.csv")
    with pytest.raises(UsageError, match="; --hive-partitioning takes year from the names of its"):
        plan(tmp_path, partitioned=False)


@pytest.mark.parametrize("options", [{"transforms": ("a:b",)}, {"create_table": True}])
def test_it_is_not_combined_with_what_changes_columns(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="--hive-partitioning gives columns of the table"):
        check_request(LoadRequest(keyspace="k", table="t", partitioned=True, **options))
