"""Room on disks: needs of one disk are added up, those of several are not."""

from __future__ import annotations

import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from ringhaul.errors import OutputUnusable
from ringhaul.storage.room import Need, check_room

MIB = 2**20


@pytest.fixture(autouse=True)
def free_100_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(100 * MIB))


def need(folder: Path, mib: int, what: str) -> Need:
    return Need(folder=str(folder), bytes_count=mib * MIB, what=what, advice=f"less {what}")


def test_needs_of_one_disk_are_added_up(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    check_room([need(one, 60, "files"), need(other, 40, "copies")])

    with pytest.raises(OutputUnusable) as refused:
        check_room([need(one, 60, "files"), need(other, 41, "copies")])

    assert str(refused.value) == (
        f"the disk of {one} and {other} has 100 MiB free, too little for files (up to 60 MiB) "
        "and copies (up to 41 MiB): free some, or less files or less copies"
    )


def test_needs_of_several_disks_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    other.mkdir()
    stat = os.stat

    class Elsewhere:
        st_dev = -1

    monkeypatch.setattr(os, "stat", lambda path: Elsewhere if path == str(other) else stat(path))
    check_room([need(tmp_path, 60, "files"), need(other, 60, "copies")])


def test_nothing_needs_no_folder(tmp_path: Path) -> None:
    check_room([])
    check_room([need(tmp_path / "absent", 0, "files")])
