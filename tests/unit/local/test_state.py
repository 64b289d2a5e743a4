"""State files: private, whole, locked."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from producer.local.errors import LocalStackError
from producer.local.state import locked, private_dir, read_json, write_json, write_private

TRY_LOCK = """
import fcntl, sys
with open(sys.argv[1], "a") as file:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(75)
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_and_folders_are_private(tmp_path: Path) -> None:
    folder = private_dir(tmp_path / "a" / "b")
    write_private(folder / "secret", "one")
    write_private(folder / "secret", "two")
    assert mode(folder) == 0o700
    assert mode(folder / "secret") == 0o600
    assert (folder / "secret").read_text() == "two"
    assert [path.name for path in folder.iterdir()] == ["secret"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    write_private(tmp_path / "file", "old")
    with pytest.raises(UnicodeEncodeError):
        write_private(tmp_path / "file", "\udc80")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_json_round_trip(tmp_path: Path) -> None:
    assert read_json(tmp_path / "x.json") is None
    write_json(tmp_path / "x.json", {"port": 9042})
    assert read_json(tmp_path / "x.json") == {"port": 9042}


@pytest.mark.parametrize("text", ["{", "[1]", ""])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "layout.json"
    path.write_text(text)
    with pytest.raises(LocalStackError, match=r"layout\.json .*Delete it and try again"):
        read_json(path)


def test_a_lock_excludes_other_processes(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    probe = [sys.executable, "-c", TRY_LOCK, str(path)]
    with locked(path):
        assert subprocess.run(probe, check=False).returncode == 75
    assert subprocess.run(probe, check=False).returncode == 0
