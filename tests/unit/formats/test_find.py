import json
import os
from pathlib import Path

import pytest

from ringhaul.errors import SourceMissing, UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.find import find_sources
from ringhaul.formats.sources import SourceFile


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "b.csv",
        "a.csv",
        "c.tsv.gz",
        "notes.md",
        ".hidden.csv",
        "sub/d.txt",
        ".git/e.csv",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x\n")
    return tmp_path


def names(found: list[SourceFile], folder: Path) -> list[str]:
    return [os.path.relpath(source.path, folder) for source in found]


def test_directories_globs_and_files_are_found_in_order_and_once(folder: Path) -> None:
    assert names(find_sources([str(folder)]), folder) == ["a.csv", "b.csv", "c.tsv.gz", "sub/d.txt"]
    assert names(find_sources([f"{folder}/*.csv", f"{folder}/b.csv"]), folder) == ["a.csv", "b.csv"]
    assert names(find_sources([f"{folder}/**/*.txt"]), folder) == ["sub/d.txt"]
    assert find_sources([f"{folder}/b.csv"]) == [SourceFile(f"{folder}/b.csv", 2, whole=False)]


def test_a_file_whose_name_looks_like_a_glob_is_a_file(folder: Path) -> None:
    (folder / "x[1].csv").write_bytes(b"1\n")
    assert names(find_sources([f"{folder}/x[1].csv"]), folder) == ["x[1].csv"]


def test_what_can_only_be_read_whole(folder: Path) -> None:
    assert [source.whole for source in find_sources([str(folder)])] == [False, False, True, False]
    utf_16 = CsvDialect(encoding="utf-16")
    assert all(source.whole for source in find_sources([str(folder)], utf_16))


@pytest.mark.parametrize(
    ("arg", "error", "told"),
    [
        ("bb.csv", SourceMissing, "bb.csv: no such file; did you mean "),
        ("zzzzz", SourceMissing, "zzzzz: no such file"),
        ("none/x.csv", SourceMissing, "none/x.csv: no such file; there is no directory"),
        ("*.parquet", SourceMissing, "*.parquet: no file matches"),
        (
            "empty",
            UsageError,
            "empty: the directory holds no .csv, .tsv, .txt, .jsonl, .ndjson, .json, .parquet file",
        ),
        ("fifo", UsageError, "fifo: not a regular file"),
        ("dangling", SourceMissing, "dangling: No such file"),
    ],
)
def test_what_gives_nothing_to_read_is_told(
    folder: Path, arg: str, error: type[UsageError], told: str
) -> None:
    (folder / "empty").mkdir()
    os.mkfifo(folder / "fifo")
    (folder / "dangling").symlink_to("nowhere")
    with pytest.raises(error) as raised:
        find_sources([f"{folder}/{arg}"])
    assert told in str(raised.value)
    assert raised.value.exit_code == 2


def test_a_folder_that_was_unloaded_gives_the_parts_of_its_manifest(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "left over.csv"):
        (tmp_path / name).write_text("id\n")
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"parts": [{"name": "b.csv"}, {"name": "a.csv"}]}))
    found = find_sources([str(tmp_path)])
    assert [Path(source.path).name for source in found] == ["b.csv", "a.csv"]

    manifest.write_text(json.dumps({"parts": [{"name": "c.csv"}]}))
    with pytest.raises(SourceMissing, match=r"lists c\.csv, which is not there"):
        find_sources([str(tmp_path)])
    manifest.write_text(json.dumps({"parts": []}))
    with pytest.raises(UsageError, match="nothing was unloaded"):
        find_sources([str(tmp_path)])
    manifest.write_text("[]")  # somebody else's
    assert len(find_sources([str(tmp_path)])) == 3


def test_a_parquet_file_is_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "a.parquet.gz").write_bytes(b"")
    with pytest.raises(UsageError, match="unpack it first"):
        find_sources([str(tmp_path / "a.parquet.gz")])
