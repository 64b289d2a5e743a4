"""The sources of a load: what their headers name, and files without a record among others."""

from __future__ import annotations

import errno
import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producer.dry_run import dry_run_text
from producer.feed import split_sources
from producer.plan import plan_sources, with_empty
from producer.plan_sources import LoadRequest
from ringhaul.errors import SourceMissing, UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.find import find_sources
from ringhaul.formats.header import SourceEmpty
from ringhaul.load.job import LoadSource
from ringhaul.load.unit import UNCOUNTED
from tests.loads import load_job, table_schema

TABLE = table_schema({"id": "int", "n": "bigint", "note": "text"}, ["id"])
Plan = Callable[..., tuple[LoadSource, ...]]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Plans a load of the files of `tmp_path`."""

    def planned(**options: Any) -> tuple[LoadSource, ...]:
        request = LoadRequest(keyspace="shop", table="orders", **options)
        files = find_sources([str(tmp_path)], request.dialect, request.file_format)
        found = plan_sources(request, files, TABLE)
        return with_empty(request, files, found, [source for source in found if source])

    return planned


# --- names in a header


def test_columns_take_the_place_of_names_that_cannot_be_used(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(",n,n\n0,1,2\n")  # as pandas writes an index
    with pytest.raises(UsageError, match=r"field 1 of 3 has no name; .* --columns"):
        plan()
    (source,) = plan(columns=["id", "n", "note"])
    assert source.fields == ("id", "n", "note")
    assert (source.start_offset_bytes, source.start_line) == (5, 2)


def test_names_that_are_not_needed_may_be_anything(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(",n,a,a\n0,1,2,3\n")
    (source,) = plan(mapping={"0": "id", "n": "n"})
    assert source.mapping == (("", "id"), ("n", "n"))
    with pytest.raises(UsageError, match="they have one name: name all fields by --columns"):
        plan(mapping={"2": "id"})
    (tmp_path / "x.csv").write_text("id,n,a,a\n0,1,2,3\n")
    (source,) = plan(skip_columns=["a"])
    assert source.mapping == (("id", "id"), ("n", "n"))
    with pytest.raises(UsageError, match="'a' names 2 fields"):
        plan()
    with pytest.raises(UsageError, match="'a' names 2 fields"):
        plan(transforms=["m:f"], skip_columns=["a"])  # that is about what comes out of it


@pytest.mark.parametrize(
    ("name", "header", "spelt"),
    [("x.tsv", "id\tn", "\\t"), ("x.csv", "id;n;note", ";"), ("x.txt", "id|n", "|")],
)
def test_a_header_of_one_field_tells_of_another_delimiter(
    plan: Plan, tmp_path: Path, name: str, header: str, spelt: str
) -> None:
    (tmp_path / name).write_text(f"{header}\n{header}\n")
    options: list[dict[str, Any]] = [{}, {"mapping": {"id": "id"}}, {"columns": ["id", "n"]}]
    for given in options:
        with pytest.raises(UsageError) as refusal:
            plan(**given)
        assert f"give --delimiter '{spelt}'" in str(refusal.value)
    dialect = CsvDialect(delimiter=spelt)
    assert plan(dialect=dialect)[0].mapping[:2] == (("id", "id"), ("n", "n"))
    # Whoever knows that it is one field may have it.
    assert plan(columns=["id"])[0].fields == ("id",)
    assert plan(mapping={"0": "id"})[0].fields == (header,)
    assert plan(transforms=["m:f"])[0].fields == (header,)


def test_commas_where_another_delimiter_is_given(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,n\n1,2\n")
    with pytest.raises(UsageError, match="give --delimiter ','"):
        plan(dialect=CsvDialect(delimiter=";"))


def test_a_file_that_may_not_be_read_is_named_once(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"id\n1\n")

    opens = open

    def refused(name: Any, *args: Any, **options: Any) -> Any:
        if name == str(path):  # root may read any
            raise PermissionError(errno.EACCES, "Permission denied")
        return opens(name, *args, **options)

    monkeypatch.setattr("builtins.open", refused)
    with pytest.raises(SourceMissing, match=rf"^{path}: Permission denied"):
        plan()


# --- what is no text


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
@pytest.mark.parametrize("header", [True, False])
def test_what_is_no_text_is_told(plan: Plan, tmp_path: Path, name: str, header: bool) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"id,n\n1,2\n" * 9))
    if name == "x.jsonl" and not header:
        return  # has none anyway
    with pytest.raises(UsageError, match=rf"{name} is compressed by gzip: give it a name"):
        plan(header=header)


# --- files without a record


@pytest.mark.parametrize("header", [True, False])
def test_an_empty_file_among_others_is_a_source(plan: Plan, tmp_path: Path, header: bool) -> None:
    # Given parts some of which hold nothing, the first and the last among them
    (tmp_path / "part-0.csv").write_bytes(b"")
    (tmp_path / "part-1.csv").write_bytes(b"id,n,note\n1,2,x\n" if header else b"1,2,x\n")
    (tmp_path / "part-2.csv.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "part-3.csv").write_bytes(b"\xef\xbb\xbf\n")
    (tmp_path / "part-4.csv").write_bytes(b"id,n,note\n3,4,y\n" if header else b"3,4,y\n")
    (tmp_path / "part-5.csv").write_bytes(b"")
    # When
    sources = plan(header=header)
    # Then each is a source of its own place and name, from its beginning
    assert [Path(source.file.path).name for source in sources] == sorted(
        path.name for path in tmp_path.iterdir()
    )
    assert {source.mapping for source in sources} == {(("id", "id"), ("n", "n"), ("note", "note"))}
    for number in (0, 2, 3, 5):
        assert (sources[number].start_offset_bytes, sources[number].start_line) == (0, 1)
    # And the records are those of the others
    job = load_job(TABLE, *sources)
    units = [(unit.source, unit.first_ordinal, unit.records_count) for unit in split_sources(job)]
    assert units == [(1, 0, 1), (2, 1, UNCOUNTED), (4, 1, 1)]
    shown = dry_run_text(job, 1)
    assert "part-0.csv: 0 records, 0 rejected" in shown
    assert "part-1.csv: 1 records, 0 rejected" in shown


def test_an_empty_file_beside_other_formats(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"")
    (tmp_path / "b.csv").write_bytes(b"")
    pq.write_table(pa.table({"id": [1], "n": [2]}), tmp_path / "c.parquet")
    (tmp_path / "d.jsonl").write_bytes(b'{"id": 1}\n')
    sources = plan()
    assert [source.format for source in sources] == ["jsonl", "csv", "parquet", "jsonl"]
    job = load_job(TABLE, *sources)
    assert [unit.source for unit in split_sources(job)] == [2, 3]
    assert replace(job, sources=sources) == type(job).from_json(job.to_json())


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_nothing_but_empty_files_is_refused(plan: Plan, tmp_path: Path, name: str) -> None:
    for file in (name, f"b{name}"):
        (tmp_path / file).write_bytes(b"\n")
    with pytest.raises(SourceEmpty, match=rf"/{name} is empty: it has no .*records") as refusal:
        plan()
    assert refusal.value.exit_code == 2


def test_a_file_that_is_refused_for_more_than_that_is_refused(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"")
    (tmp_path / "b.csv").write_bytes(b"x,y\n1,2\n")
    with pytest.raises(UsageError, match=r"b\.csv: the header names no column"):
        plan()
