"""Files that are created and replaced safely."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ringhaul.new_file import new_file, replace_file


def test_a_link_under_the_name_is_not_followed(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "out"
    victim.write_text("kept")
    path.symlink_to(victim)
    with new_file(path) as file:
        file.write(b"new")
    assert (victim.read_text(), path.read_text(), path.is_symlink()) == ("kept", "new", False)


def test_readers_see_the_old_file_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    with replace_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["out"]


def test_a_failure_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(RuntimeError), replace_file(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]


def test_a_private_file_is_never_readable_for_others(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    before = os.umask(0)
    try:
        with replace_file(path, mode=0o600, temporary=tmp_path / ".t") as file:
            assert stat.S_IMODE((tmp_path / ".t").stat().st_mode) == 0o600
            file.write(b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
