"""A header behind titles: by its line, by its names, and after a line `sep=;`."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from producer.request.load import LoadDraft, check_draft
from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import SourceEmpty
from ringhaul.mapping.language import parse_mapping
from ringhaul.records.job import LoadSource
from ringhaul.sources.files import open_whole
from ringhaul.sources.find import find_sources
from tests.heads import plan_sources, with_separator
from tests.loads import table_schema
from tests.options import parse_options

TABLE = table_schema({"id": "int", "n": "bigint", "note": "text"}, ["id"])


def plan(folder: Path, **options: Any) -> tuple[LoadSource, LoadDraft]:
    """Plan a load of the only file of a folder."""
    request = LoadDraft(keyspace="shop", table="orders", **options)
    files = find_sources([str(folder)], request.dialect)
    request = with_separator(request, files)
    (source,) = plan_sources(request, files, TABLE)
    assert source is not None
    return source, request


def rest(source: LoadSource, dialect: CsvDialect | None = None) -> bytes:
    """Return what stands behind the header."""
    with open_whole(source.file, dialect or CsvDialect()) as stream:
        return stream.read(1 << 20)[source.start_offset_bytes :]


TITLED = '"Orders" of 6" x, "May\n\n,,\nid,n,note\n1,2,x\n'


@pytest.mark.parametrize("header_at", [4, "auto"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_records_begin_behind_the_header(
    tmp_path: Path, header_at: int | str, ends: str, start: str
) -> None:
    (tmp_path / "x.csv").write_bytes((start + TITLED.replace("\n", ends)).encode())
    source, _ = plan(tmp_path, header_at=header_at)
    assert (source.fields, source.start_line) == (("id", "n", "note"), 5)
    assert rest(source) == f"1,2,x{ends}".encode()


def test_a_comment_is_no_header(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("# once,id,n,note\nOrders\nnote,id,n\nx,1,2\n")
    source, _ = plan(tmp_path, header_at="auto", dialect=CsvDialect(comment="#"))
    assert (source.fields, source.start_line) == (("note", "id", "n"), 4)


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "cp037"])
def test_other_encodings_and_compressed_files(tmp_path: Path, encoding: str) -> None:
    dialect = CsvDialect(encoding=encoding)
    data = TITLED.encode(encoding)
    with gzip.open(tmp_path / "x.csv.gz", "wb") as file:
        file.write(data)
    source, _ = plan(tmp_path, header_at="auto", dialect=dialect)
    assert source.fields == ("id", "n", "note")


def test_auto_takes_the_first_line_that_names_the_most_columns(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("n,of,things\nID,Note,n\nid,note,n\n")
    assert plan(tmp_path, header_at="auto")[0].fields == ("ID", "Note", "n")
    (tmp_path / "x.csv").write_text("May,x\nnumber,x\n1,2\n")
    mapping = parse_mapping("number=id,x=note")
    assert plan(tmp_path, header_at="auto", mapping=mapping)[0].fields == ("number", "x")


@pytest.mark.parametrize("sep", ["sep=;", '"sep=;"', "SEP=;"])
def test_a_line_sep_names_the_delimiter(tmp_path: Path, sep: str) -> None:
    (tmp_path / "x.csv").write_text(f"{sep}\nid;n;note\n1;2;x\n")
    source, request = plan(tmp_path, header_at="auto")
    assert (source.fields, request.dialect.delimiter) == (("id", "n", "note"), ";")
    assert plan(tmp_path, header_at=2)[0] == source
    with pytest.raises(UsageError, match="begins with sep=;, but --delimiter is 'o'"):
        plan(tmp_path, header_at=2, dialect=CsvDialect(delimiter="o"))
    (tmp_path / "y.csv").write_text("title\nid,n,note\n")
    with pytest.raises(UsageError, match=r"x.csv begins with sep=;, but .*y.csv does not"):
        plan(tmp_path, header_at="auto")


def test_without_the_option_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("sep=;\nid;n;note\n")
    request = LoadDraft(keyspace="shop", table="orders")
    assert with_separator(request, find_sources([str(tmp_path)])) is request


@pytest.mark.parametrize(
    ("text", "header_at", "why"),
    [
        (TITLED, 9, r"x.csv has no line 9 for the header \(--header-at\): it has 5"),
        ("a,b\n1,2\n", "auto", "names no column of shop.orders in its first 2 lines"),
    ],
)
def test_a_header_that_is_not_there_is_refused(
    tmp_path: Path, text: str, header_at: int | str, why: str
) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(UsageError, match=why):
        plan(tmp_path, header_at=header_at)


def test_an_empty_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("")
    with pytest.raises(SourceEmpty):
        plan(tmp_path, header_at="auto")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--header-at", "0"), "give the number of a line, 1 to 1000, or auto"),
        (("--header-at", "9999999999"), "give the number of a line"),
        (("--header-at", "first"), "give the number of a line"),
        (("--header-at", "2", "--no-header"), "--no-header says that there is none"),
        (("--header-at", "2", "--format", "jsonl"), "no file that is read is CSV"),
        (("--header-at", "auto", "--transform", "a:b"), "give the number of its line"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: tuple[str, ...], why: str) -> None:
    from config.settings import load_settings
    from producer.request.load import load_draft

    with pytest.raises(UsageError, match=why):
        load_draft(parse_options("load", "a.csv", "-t", "k.t", *arguments), load_settings())


def test_lookup_names_its_own_option() -> None:
    from producer.request.statements import values_draft

    lookup = ("lookup", "-t", "k.t", "--keys", "k.csv", "--values-header-at")
    assert values_draft(parse_options(*lookup, "3").values).header_at == 3
    with pytest.raises(UsageError, match="--values-header-at 'x'"):
        values_draft(parse_options(*lookup, "x").values)


def test_a_request_without_csv_is_refused() -> None:
    request = LoadDraft(keyspace="k", table="t", header_at=2)
    with pytest.raises(UsageError, match="--header-at has no effect"):
        check_draft(replace(request, file_format="parquet"))
