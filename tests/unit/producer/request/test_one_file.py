"""An unload to one file: what names one, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from config.settings import load_settings
from producer.request.one_file import one_file_of
from producer.request.unload import UnloadRequest, unload_request
from ringhaul.errors import UsageError
from tests.options import parse_options


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def request(*arguments: str) -> UnloadRequest:
    options: Any = parse_options("unload", "-t", "k.t", *arguments)
    return unload_request(options, load_settings(), "ul-1")


@pytest.mark.parametrize(
    ("arguments", "name", "kind", "compression"),
    [
        (("-o", "out.csv"), "out.csv", "csv", "none"),
        (("-o", "a/b/out.JSON.gz"), "out.JSON.gz", "jsonl", "gzip"),
        (("-o", "out.parquet"), "out.parquet", "parquet", "zstd"),
        (("-o", "out.csv.zstd"), "out.csv.zstd", "csv", "zstd"),
        (("-o", "s3://b/x/out.ndjson.br"), "out.ndjson.br", "jsonl", "brotli"),
        (("-o", "out", "--single-file"), "out", "csv", "none"),
        (("-o", "out.gz", "--single-file", "--format", "jsonl"), "out.gz", "jsonl", "gzip"),
        (("-o", "out.d", "--single-file", "--compression", "xz"), "out.d", "csv", "xz"),
    ],
)
def test_the_name_of_a_file_says_its_format(
    arguments: tuple[str, ...], name: str, kind: str, compression: str
) -> None:
    found = request(*arguments)
    assert found.file is not None and found.file.name == name
    assert (found.output.format.kind, found.output.format.compression) == (kind, compression)


@pytest.mark.parametrize("output", ["out", "out/", "out.csv/", "there.csv", "s3://b/out", "out.d"])
def test_other_names_are_folders(folder: Path, output: str) -> None:
    (folder / "there.csv").mkdir()
    assert request("-o", output).file is None


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("-o", "-", "--single-file"), "--single-file applies to files, and -o - makes none"),
        (("-o", "-", "--file-name-format", "{number}"), "--file-name-format applies to files"),
        (("-o", "a.csv", "--max-rows-per-file", "5"), "make several files, and you want one"),
        (("-o", "d/", "--single-file", "--max-file-size", "1M"), "make several files"),
        (("-o", "a.csv", "--format", "jsonl"), "has the name of csv, and --format is jsonl"),
        (("-o", "a.csv.gz", "--compression", "zstd"), "has the name of gzip, and --compression"),
        (("-o", "a.csv.snappy"), ".snappy is not written for csv; a name ends with .gz"),
        (("-o", "a.parquet.gz"), ".gz is not written for parquet"),
        (("-o", "a.csv", "--file-name-format", "{number}"), "names the files of a folder"),
        (("-o", "s3://a.csv"), "names no file"),
        (("-o", "/dev/null", "--single-file"), "is neither a file nor a folder"),
        (("-o", "d/", "--file-name-format", "../{number}"), "has a slash"),
        (
            (
                "-o",
                "mine.txt/a.csv",
            ),
            "mine.txt is not a folder",
        ),
    ],
)
def test_what_cannot_be_one_file_is_refused(
    folder: Path, arguments: tuple[str, ...], why: str
) -> None:
    (folder / "mine.txt").write_text("keep me")
    with pytest.raises(UsageError, match=why):
        request(*arguments)


def test_an_existing_file_is_one_file(folder: Path) -> None:
    (folder / "out.csv").write_text("older")
    options: Any = parse_options("unload", "-t", "k.t", "-o", "out.csv")
    assert one_file_of(options) is not None
