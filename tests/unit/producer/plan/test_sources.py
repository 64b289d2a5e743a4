"""Sources of a load: empty files among others, files that cannot be read, options for neither."""

from __future__ import annotations

import errno
import gzip
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producer.plan.units import split_sources
from producer.request.load import LoadDraft, check_draft, refuse_unread
from ringhaul.errors import SourceMissing, UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import SourceEmpty
from ringhaul.formats.suffixes import format_of
from ringhaul.ledger.kinds import JobKind
from ringhaul.records.unit import UNCOUNTED
from tasks.command_line import spelled_as
from tests.heads import dry_run_text
from tests.loads import load_job
from tests.unit.producer.plan.conftest import TABLE, Plan

UNREAD: list[tuple[str, str, dict[str, Any], str]] = [
    ("x.parquet", "auto", {"null_strings": ("NULL",)}, "--null has no effect"),
    ("x.jsonl", "auto", {"null_strings": ("NULL",), "null_quoted": True}, ""),
    ("x.jsonl", "auto", {"fill_empty": "x"}, "--fill-empty has no effect"),
    ("x.jsonl", "auto", {"encoding": "latin-1", "allow_nul": True}, ""),
    ("x.parquet", "auto", {"allow_nul": True, "allow_missing_fields": True}, ""),
    ("x.csv", "jsonl", {"delimiter": ";"}, "--delimiter has no effect"),
    ("x.csv", "auto", {"delimiter": ";", "quote": None}, ""),
    (
        "x.parquet",
        "auto",
        {"encoding": "latin-1"},
        "no file that is read is CSV or fixed-width text or JSON Lines;",
    ),
]


@pytest.mark.parametrize(("name", "form", "given", "message"), UNREAD)
def test_options_of_text_that_apply_to_no_file_are_refused(
    name: str, form: str, given: dict[str, Any], message: str
) -> None:
    dialect = CsvDialect(**given)
    request = LoadDraft(keyspace="shop", table="orders", dialect=dialect, file_format=form)
    formats = {format_of(name, form)}
    refuse_unread(request, {*formats, "csv"})
    if message:
        with pytest.raises(UsageError, match=message):
            refuse_unread(request, formats)
        if form != "auto":  # before any file is opened
            with pytest.raises(UsageError, match=message):
                check_draft(request)
    else:
        refuse_unread(request, formats)


def test_such_an_option_of_values_is_named() -> None:
    request = LoadDraft(keyspace="lookup", table="values", dialect=CsvDialect(quote=None))
    with spelled_as(JobKind.LOOKUP), pytest.raises(UsageError, match="--values-quote has no"):
        refuse_unread(request, {"parquet"})


def test_a_file_that_may_not_be_read_is_named_once(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"id\n1\n")

    opens = os.open

    def refused(name: Any, *args: Any, **options: Any) -> Any:
        if name == str(path):  # root may read any
            raise PermissionError(errno.EACCES, "Permission denied")
        return opens(name, *args, **options)

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(SourceMissing, match=rf"^{path}: Permission denied"):
        plan()


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
@pytest.mark.parametrize("header", [True, False])
def test_binary_files_are_refused(plan: Plan, tmp_path: Path, name: str, header: bool) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"id,n\n1,2\n" * 9))
    if name == "x.jsonl" and not header:
        return  # it has no header anyway
    with pytest.raises(UsageError, match=rf"{name} is compressed by gzip: give it a name"):
        plan(header=header)


@pytest.mark.parametrize("header", [True, False])
def test_an_empty_file_among_others_is_a_source(plan: Plan, tmp_path: Path, header: bool) -> None:
    # Given parts of which some are empty, the first and the last among them
    (tmp_path / "part-0.csv").write_bytes(b"")
    (tmp_path / "part-1.csv").write_bytes(b"id,n,note\n1,2,x\n" if header else b"1,2,x\n")
    (tmp_path / "part-2.csv.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "part-3.csv").write_bytes(b"\xef\xbb\xbf\n")
    (tmp_path / "part-4.csv").write_bytes(b"id,n,note\n3,4,y\n" if header else b"3,4,y\n")
    (tmp_path / "part-5.csv").write_bytes(b"")
    # When
    sources = plan(header=header)
    # Then each is a source with its own position and name, from its start
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
    assert "part-1.csv: 1 record, 0 rejected" in shown


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
def test_only_empty_files_are_refused(plan: Plan, tmp_path: Path, name: str) -> None:
    for file in (name, f"b{name}"):
        (tmp_path / file).write_bytes(b"\n")
    with pytest.raises(SourceEmpty, match=rf"/{name} is empty: it has no .*records") as refusal:
        plan()
    assert refusal.value.exit_code == 2


def test_a_faulty_file_beside_an_empty_one_is_refused(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"")
    (tmp_path / "b.csv").write_bytes(b"x,y\n1,2\n")
    with pytest.raises(UsageError, match=r"b\.csv: the header names no column"):
        plan()


def test_a_file_that_is_not_data_names_the_pattern_of_the_others(
    plan: Plan, tmp_path: Path
) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_bytes(b"id,n\n1,2\n")
    (tmp_path / "README.txt").write_bytes(b"the orders of May\n")
    with pytest.raises(UsageError) as refused:
        plan()
    assert "README.txt: the header names no column" in str(refused.value)
    assert str(refused.value).endswith(f"; to load only the other files, give '{tmp_path}/*.csv'")
    # The pattern would not leave out the file, or would leave out others
    (tmp_path / "c.jsonl").write_bytes(b'{"id": 1}\n')
    with pytest.raises(UsageError) as refused:
        plan()
    assert "other files" not in str(refused.value)


def test_periods_of_pandas_are_not_loaded_as_their_numbers(plan: Plan, tmp_path: Path) -> None:
    about = {"ARROW:extension:name": "pandas.period", "ARROW:extension:metadata": '{"freq": "M"}'}
    fields = [pa.field("id", pa.int64()), pa.field("n", pa.int64(), metadata=about)]
    table = pa.table([[1], [648]], schema=pa.schema(fields))
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(UsageError, match="'n' has periods of pandas"):
        plan()
    assert plan(skip_columns=("n",))
