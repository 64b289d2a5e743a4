import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ringhaul.errors import SourceMissing, UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.sources.find import find_sources
from ringhaul.sources.source import SourceFile
from ringhaul.storage.file_version import version_text


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
    version = version_text((folder / "b.csv").stat())
    assert find_sources([f"{folder}/b.csv"]) == [SourceFile(f"{folder}/b.csv", 2, False, version)]


def test_a_link_to_a_folder_is_followed_and_a_cycle_of_links_once(folder: Path) -> None:
    elsewhere = folder / "elsewhere"  # outside of the searched folder
    for name in ("in/a.csv", "elsewhere/b.csv", "elsewhere/deep/c.csv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"1\n")
    (folder / "in" / "link").symlink_to(elsewhere)
    (elsewhere / "deep" / "round").symlink_to(folder / "in")
    found = ["in/a.csv", "in/link/b.csv", "in/link/deep/c.csv"]
    assert names(find_sources([f"{folder}/in"]), folder) == found
    # With a second cycle Python's own glob would not terminate.
    (folder / "in" / "again").symlink_to(".")
    for arg in ("in/**/*.csv", "in/**/**/*.csv", "in/**", "in/**/*", "in/**/", "i*/**/*.csv"):
        assert names(find_sources([f"{folder}/{arg}"]), folder) == found, arg


def test_a_recursive_glob_skips_folders_without_files(folder: Path) -> None:
    # Given the root of a disk, with a folder of the file system and others without data files
    disk = folder / "disk"
    for name in ("data", "empty", "lost+found", "hidden"):
        (disk / name).mkdir(parents=True)
    (disk / "data" / "x.csv").write_bytes(b"id\n1\n")
    (disk / "hidden" / ".y.csv").write_bytes(b"id\n1\n")
    for arg in ("disk/**", "disk/**/*", "disk/**/*.csv"):
        assert names(find_sources([f"{folder}/{arg}"]), folder) == ["disk/data/x.csv"], arg
    # but an empty folder that a non-recursive glob names is an error
    with pytest.raises(UsageError, match=r"disk/empty: the directory holds no"):
        find_sources([f"{folder}/disk/e*"])
    (disk / "data" / "x.csv").unlink()
    with pytest.raises(SourceMissing, match="no file matches"):
        find_sources([f"{folder}/disk/**"])


def test_a_folder_is_found_by_its_own_path_and_not_by_a_link(folder: Path) -> None:
    (folder / "in" / "real").mkdir(parents=True)
    (folder / "in" / "real" / "x.dat").write_bytes(b"1\n")
    (folder / "in" / "alink").symlink_to("real")
    (folder / "in" / "another").symlink_to(folder / "in" / "alink")
    for arg in ("in/**", "in/**/*", "in/**/*.dat", "i*/**/x.dat"):
        found = find_sources([f"{folder}/{arg}"], file_format="csv")
        assert names(found, folder) == ["in/real/x.dat"], arg


@pytest.mark.parametrize(
    "arg",
    ["in/*/part/*.csv", "in/**/part/*.csv", "in/**//*.csv", "in/**/part/**/*.csv", "in/*/part"],
)
def test_a_file_is_found_once_despite_links_to_its_folder(folder: Path, arg: str) -> None:
    (folder / "in" / "z2026" / "part").mkdir(parents=True)
    (folder / "in" / "z2026" / "part" / "x.csv").write_bytes(b"1\n")
    (folder / "in" / "latest").symlink_to("z2026")
    (folder / "in" / "part").symlink_to("z2026/part")
    assert names(find_sources([f"{folder}/{arg}"]), folder) == ["in/z2026/part/x.csv"]


def test_empty_parts_of_a_glob_do_not_change_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert {Path(file.path).parent for file in find_sources(["**//*.csv"])} == {folder}


@pytest.fixture
def locked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that cannot be listed, even if root runs the tests."""
    path = folder / "sub"
    scandir, access = os.scandir, os.access

    def refused(place: Any) -> Any:
        if os.fspath(place) == str(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", refused)
    monkeypatch.setattr(
        os, "access", lambda place, mode: place != str(path) and access(place, mode)
    )
    return path


@pytest.mark.parametrize("arg", ["", "/**/*.csv", "/*/d.txt"])
def test_a_subfolder_that_cannot_be_read_is_an_error(folder: Path, locked: Path, arg: str) -> None:
    with pytest.raises(SourceMissing, match=f"^{locked}: Permission denied"):
        find_sources([f"{folder}{arg}"])


def test_folders_of_the_file_system_are_skipped(folder: Path, locked: Path) -> None:
    locked.rename(folder / "lost+found")
    assert names(find_sources([str(folder)]), folder) == ["a.csv", "b.csv", "c.tsv.gz"]


def test_a_glob_takes_the_folders_that_it_matches(folder: Path) -> None:
    for name in ("days/01.csv/part-0.csv", "days/02.csv/part-1.csv", "days/03.csv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"1\n")
    (folder / "days" / "01.csv" / "_SUCCESS").write_bytes(b"")
    found = ["days/01.csv/part-0.csv", "days/02.csv/part-1.csv", "days/03.csv"]
    assert names(find_sources([f"{folder}/days/*.csv"]), folder) == found
    assert names(find_sources([f"{folder}/days/**/part-0*"]), folder) == found[:1]
    assert names(find_sources([f"{folder}/days/**/"]), folder) == found  # folders only
    assert names(find_sources([f"{folder}/day*"]), folder) == found
    (folder / "days" / "04.csv").mkdir()
    assert names(find_sources([f"{folder}/days/**/"]), folder) == found
    with pytest.raises(UsageError, match=r"04\.csv: the directory holds no"):
        find_sources([f"{folder}/days/*.csv"])


def test_a_glob_into_a_folder_selects_its_files(folder: Path) -> None:
    (folder / "sub" / "notes.md").write_bytes(b"x\n")
    found = names(find_sources([f"{folder}/s**/**/*.txt"]), folder)
    assert found == ["sub/d.txt"]
    assert names(find_sources([f"{folder}/sub/**"]), folder) == ["sub/d.txt", "sub/notes.md"]


def test_a_glob_does_not_skip_dangling_links(folder: Path) -> None:
    (folder / "z.csv").symlink_to("nowhere")
    for arg in ("*.csv", "**/*.csv", ""):
        with pytest.raises(SourceMissing, match=r"z\.csv: No such file"):
            find_sources([f"{folder}/{arg}"])


def test_a_file_whose_name_looks_like_a_glob_is_a_file(folder: Path) -> None:
    (folder / "x[1].csv").write_bytes(b"1\n")
    assert names(find_sources([f"{folder}/x[1].csv"]), folder) == ["x[1].csv"]


def test_compressed_files_are_read_whole(folder: Path) -> None:
    assert [source.whole for source in find_sources([str(folder)])] == [False, False, True, False]
    utf_16 = CsvDialect(encoding="utf-16")
    assert all(source.whole for source in find_sources([str(folder)], utf_16))


@pytest.mark.parametrize(
    ("arg", "error", "message"),
    [
        ("bb.csv", SourceMissing, "bb.csv: no such file; did you mean "),
        ("zzzzz", SourceMissing, "zzzzz: no such file"),
        (
            "a.csv, b.csv",
            SourceMissing,
            "no such file; between several files put spaces, not commas",
        ),
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
def test_sources_without_data_are_errors(
    folder: Path, arg: str, error: type[UsageError], message: str
) -> None:
    (folder / "empty").mkdir()
    os.mkfifo(folder / "fifo")
    (folder / "dangling").symlink_to("nowhere")
    with pytest.raises(error) as raised:
        find_sources([f"{folder}/{arg}"])
    assert message in str(raised.value)
    assert raised.value.exit_code == 2


def test_an_unloaded_folder_gives_the_parts_of_its_manifest(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "left over.csv"):
        (tmp_path / name).write_text("id\n")
    manifest = tmp_path / "_manifest.json"
    manifest.write_text(json.dumps({"parts": [{"name": "b.csv"}, {"name": "a.csv"}]}))
    found = find_sources([str(tmp_path)])
    assert [Path(source.path).name for source in found] == ["b.csv", "a.csv"]

    for size_bytes in (3, 4):  # of `a.csv`, which has 3
        parts = [{"name": "b.csv", "bytes": 3}, {"name": "a.csv", "bytes": size_bytes}]
        manifest.write_text(json.dumps({"parts": parts}))
        if size_bytes == 3:
            assert len(find_sources([str(tmp_path)])) == 2
    with pytest.raises(UsageError, match=r"lists a\.csv with 4 bytes, and it has 3"):
        find_sources([str(tmp_path)])
    manifest.write_text(json.dumps({"parts": [{"name": "c.csv"}]}))
    with pytest.raises(SourceMissing, match=r"lists c\.csv, which is not there"):
        find_sources([str(tmp_path)])
    manifest.write_text(json.dumps({"parts": []}))
    with pytest.raises(UsageError, match="nothing was unloaded"):
        find_sources([str(tmp_path)])
    manifest.write_text("[]")  # a manifest of another program
    assert len(find_sources([str(tmp_path)])) == 3


def test_a_parquet_file_is_not_decompressed(tmp_path: Path) -> None:
    (tmp_path / "a.parquet.gz").write_bytes(b"")
    with pytest.raises(UsageError, match="unpack it first"):
        find_sources([str(tmp_path / "a.parquet.gz")])


@pytest.mark.parametrize("value", ["false", "TRUE"])
def test_a_value_of_a_switch_is_no_file(value: str) -> None:
    """Bulk Loader has `-header false`."""
    with pytest.raises(
        SourceMissing, match=f"{value}: no such file; a switch takes no value: write"
    ):
        find_sources([value])
