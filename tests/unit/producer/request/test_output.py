"""Outputs: what goes to standard output, and which paths are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from config.settings import load_settings
from producer.options.job import Showing
from producer.request.output import output_of, refuse_two_on_stdout
from producer.run.existing_job import run_or_continue
from ringhaul.errors import UsageError
from ringhaul.ledger.kinds import JobKind
from ringhaul.output.job import Output
from tests.options import parse_options

MESSAGES: dict[str, dict[str, Any]] = {
    "--json": {"as_json": True},
    "--progress json": {"progress": "json"},
}
#: By their name in messages: the rows of an unload or a lookup, the result of a query or a count.
ROWS = {"-o -": "-", "the result": None}


@pytest.mark.parametrize("messages", MESSAGES)
@pytest.mark.parametrize("rows", ROWS)
def test_rows_and_messages_do_not_share_standard_output(rows: str, messages: str) -> None:
    output, showing = ROWS[rows], Showing(**MESSAGES[messages])
    with pytest.raises(UsageError, match=f"{rows} and {messages} both want standard output"):
        refuse_two_on_stdout(output, showing)
    refuse_two_on_stdout(output, Showing())
    refuse_two_on_stdout("/out/file", showing)
    if messages == "--progress json":
        refuse_two_on_stdout(output, replace(showing, quiet=True))


@pytest.mark.parametrize("command", [("count", "-t", "k.t"), ("query", "SELECT count(*) FROM k.t")])
def test_rows_and_messages_of_an_existing_job_do_not_share_standard_output(
    command: tuple[str, ...],
) -> None:
    options = parse_options(*command, "--job-id", "ct-1", "--json")
    with pytest.raises(UsageError, match="both want standard output"):
        run_or_continue(options, JobKind(command[0]), lambda _: pytest.fail("it was run"))


@pytest.mark.parametrize("given", [{"max_rows_per_file": 5}, {"max_file_size": "1M"}])
def test_sizes_of_files_do_not_apply_to_standard_output(
    given: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="apply to files, and -o - makes none"):
        output("-", **given)
    output(str(tmp_path / "out"), **given)


def output(path: str, **options: Any) -> Output:
    given = parse_options("unload", "-t", "k.t", "-o", path)
    return output_of(replace(given, **options), load_settings(), "ul-1")


NAMED_LIKE_ONE_FILE: dict[str, tuple[str, dict[str, Any], str]] = {
    "csv": ("out.csv", {}, ", or `-o - > out.csv` for one file"),
    "gzip": ("my out.CSV.gz", {}, ", or `-o - --compression gzip > 'my out.CSV.gz'` for one file"),
    "given": ("out.csv.zst", {"compression": "zstd"}, ", or `-o - > out.csv.zst` for one file"),
    "jsonl": ("a/b.jsonl", {}, ", or `-o - --format jsonl > a/b.jsonl` for one file"),
    "said": ("b.json", {"format": "jsonl"}, ", or `-o - > b.json` for one file"),
    "parquet": ("out.parquet", {"format": "parquet"}, ""),
    "by name": ("out.parquet", {}, ""),
    "object": ("s3://b/x/out.csv", {}, ""),
}


@pytest.mark.parametrize("case", NAMED_LIKE_ONE_FILE)
def test_an_output_that_is_named_like_one_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path, options, one_file = NAMED_LIKE_ONE_FILE[case]
    with pytest.raises(UsageError) as refusal:
        output(path, **options)
    assert str(refusal.value) == (
        f"-o {path}: an unload writes a folder of files; give a folder ({path}/ if it is to have "
        f"this name){one_file}"
    )
    # A trailing slash, or a folder that exists, is accepted.
    assert output(f"{path}/", **options).url.removesuffix("/").endswith(path)
    if "://" not in path:
        (tmp_path / path).mkdir(parents=True)
        assert output(path, **options).url == str(tmp_path / path)


@pytest.mark.parametrize("path", ["mine.txt", "mine.txt/", "mine.txt/out/x", "file://{}/mine.txt"])
def test_an_output_that_is_a_file_or_in_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(UsageError, match=f"{tmp_path}/mine.txt is not a folder; give a folder"):
        output(path.format(tmp_path))


def test_names_that_look_like_no_file_are_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in ("out", "out/2026.01", "s3://b/out", "out.d"):
        assert output(path).url.endswith(path)


def test_an_option_of_the_format_is_named_as_it_is_given(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--delimiter: applies only to CSV"):
        output(str(tmp_path), format="jsonl", delimiter=";")
