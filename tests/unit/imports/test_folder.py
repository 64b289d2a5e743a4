"""The folders of imports: where they are, who may use them, and that nothing is left."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ringhaul.errors import OutputUnusable, UsageError
from ringhaul.imports.folder import ImportFolders, remove_job_folders
from ringhaul.sstables.version import SSTableVersion
from ringhaul.storage.access import Access, set_access
from ringhaul.streaming.owners import Node

NODE = Node(address="10.0.0.7", port=7000)
NB = SSTableVersion.NB
FILES = [("Data.db", b"d" * 3_000_000), ("Digest.crc32", b"1"), ("Statistics.db", b"s")]


def folders(folder: Path, node_folder: str = "") -> ImportFolders:
    return ImportFolders(
        folder=str(folder),
        node_folder=node_folder or str(folder),
        keyspace="shop",
        table="orders",
        job_id="ld-1",
    )


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_are_laid_out_as_nodes_expect(tmp_path: Path) -> None:
    (tmp_path / "10.0.0.7").mkdir()
    drop = folders(tmp_path / "{node}", "/seen/{node}").new(NODE)
    drop.write(NB, FILES)

    place = Path(drop.path)
    assert place.parts[-2:] == ("shop", "orders")
    assert place.parents[3] == tmp_path / "10.0.0.7"
    assert place.parents[2].name == "ld-1"
    found = {path.name: path.read_bytes() for path in place.iterdir()}
    assert found.pop("nb-1-big-TOC.txt") == b"Data.db\nDigest.crc32\nStatistics.db\nTOC.txt\n"
    assert found == {f"nb-1-big-{name}": contents for name, contents in FILES}
    assert drop.seen == "/seen/10.0.0.7/" + "/".join(place.parts[-4:])
    assert drop.withdraw(NB)
    assert not drop.withdraw(NB)
    drop.remove()
    assert not drop.withdraw(NB)
    assert [path.name for path in (tmp_path / "10.0.0.7").rglob("*")] == ["ld-1"]


def test_two_calls_never_share_a_folder(tmp_path: Path) -> None:
    here = folders(tmp_path)
    assert here.new(NODE).path != here.new(NODE).path


@pytest.mark.parametrize("given", [0o700, 0o770, 0o2775, 0o1777])
def test_what_is_made_has_the_permissions_of_the_folder(tmp_path: Path, given: int) -> None:
    base = tmp_path / "imports"
    base.mkdir()
    base.chmod(given)
    before = os.umask(0o077)
    try:
        drop = folders(base).new(NODE)
        drop.write(NB, FILES)
    finally:
        os.umask(before)
    place = Path(drop.path)
    # Not the sticky bit: with it, no other user could move the files away.
    assert {mode(path) for path in [place, *place.parents[:3]]} == {given & 0o2777}
    assert {mode(path) for path in place.iterdir()} == {given & 0o666}


def test_a_folder_that_is_not_mounted_is_not_made(tmp_path: Path) -> None:
    for missing in ("no", "no/{node}", "{node}/in"):
        with pytest.raises(OutputUnusable, match=r"is not there: create it .* \(imports\.folder\)"):
            folders(tmp_path / missing).new(NODE)
    assert list(tmp_path.iterdir()) == []
    # But that of a node is, below one that exists
    folders(tmp_path / "{node}").new(NODE)
    assert [path.name for path in tmp_path.iterdir()] == ["10.0.0.7"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputUnusable, match=r"cannot write SSTables to .*file: Not a directory"):
        folders(tmp_path / "file").new(NODE)


@pytest.fixture
def roots(tmp_path: Path) -> Iterator[Path]:
    """Let jobs use one folder only."""
    (tmp_path / "data").mkdir()
    set_access(Access(allowed_roots=(str(tmp_path / "data"),)))
    yield tmp_path / "data"
    set_access(Access())


def test_a_job_cannot_name_a_folder_outside_of_the_roots(tmp_path: Path, roots: Path) -> None:
    folders(roots).new(NODE)
    for forged in (tmp_path, roots / ".."):
        with pytest.raises(UsageError, match=r"storage\.allowed_roots"):
            folders(forged).new(NODE)
    with pytest.raises(UsageError, match=r"storage\.allowed_roots"):
        remove_job_folders(str(tmp_path), "data")
    assert roots.exists()


def test_the_folders_of_one_job_are_removed_on_all_nodes(tmp_path: Path) -> None:
    here = folders(tmp_path / "{node}")
    for address in ("10.0.0.7", "10.0.0.8"):
        here.new(replace(NODE, address=address)).write(NB, FILES)
    other = replace(here, job_id="ld-12").new(NODE)

    remove_job_folders(str(tmp_path / "{node}"), "ld-1")

    left = {path.parent.name for path in tmp_path.glob("*/*/*")}
    assert left == {"ld-12"}
    assert os.path.isdir(other.path)
