"""Lines about what a user may not expect of the files of a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from producer.inputs.file_notes import file_notes
from ringhaul.sources.find import find_sources
from ringhaul.storage.hidden import MANIFESTS

PART = "part-000000-000000-ul-1a2b3c-a1.csv"


def notes(folder: Path, *sources: str) -> str:
    paths = [f"{folder}{source}" for source in sources]
    found = file_notes(paths, find_sources(paths))
    assert [note.warns for note in found] == [note.text.startswith("warning: ") for note in found]
    return "\n".join(note.text for note in found).replace(str(folder), "")


def put(path: Path, text: str = "id\n1\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_parts_without_their_list_give_a_warning(tmp_path: Path, manifest: str) -> None:
    # Given the partitioned folder of an unload that failed, one that is complete, and one of Spark
    for path in (f"failed/g=1/h=2/{PART}", f"env=x/done/g=1/{PART}", f"env=x/{PART}"):
        put(tmp_path / path)
    put(tmp_path / "spark" / "part-00000-12345678-9.csv")
    for folder in ("env=x/done", "env=x"):
        put(tmp_path / folder / manifest, f'{{"parts": [{{"name": "{PART}"}}]}}')
    assert notes(tmp_path, "/failed", "/env=x/done/*/*.csv", "/env=x", "/spark") == (
        "warning: /failed has parts of the unload ul-1a2b3c and no _manifest.json: that unload did "
        "not finish (`ringhaul resume ul-1a2b3c` continues it), or the list was not copied with "
        "its files; rows may be missing"
    )
    assert notes(tmp_path, f"/failed/g=1/h=2/{PART}") == "", "the user has chosen it"


def test_files_of_a_table_with_a_log_give_a_warning(tmp_path: Path) -> None:
    put(tmp_path / "t" / "_delta_log" / "0.json")
    put(tmp_path / "t" / "day=1" / "a.csv")
    assert notes(tmp_path, "/t/*/*.csv") == (
        "warning: /t is a table of Delta Lake, and its files are read as they are, also those of "
        "older versions: rows that were replaced or deleted may be among them"
    )


def test_files_that_count_as_hidden_are_named(tmp_path: Path) -> None:
    for name in ("_a.csv", "_b.csv", "c.csv"):
        put(tmp_path / name)
    said = "not read: /_a.csv and 1 more, as names with _ count as hidden unless given"
    assert notes(tmp_path, "") == notes(tmp_path, "/*.csv") == said
    assert notes(tmp_path, "/_a.csv", "/_b.csv", "/c.csv") == ""
