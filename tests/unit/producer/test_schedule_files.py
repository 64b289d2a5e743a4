"""What folders and globs list, and checksums."""

import hashlib
import os
from pathlib import Path

from producer.schedule_files import list_arrivals, take_checksum
from ringhaul.schedule.arrivals import Listed


def paths(folder: Path, *patterns: str) -> list[str]:
    found = list_arrivals(patterns, str(folder))
    return [os.path.relpath(file.path, folder) for file in found]


def test_globs_folders_and_what_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / ".hidden").mkdir()
    for name in ("b.csv", "a.csv", ".a.csv", "c.txt", "deep/d.csv", ".hidden/e.csv"):
        (tmp_path / "in" / name).write_text("x")
    (tmp_path / "in" / "dead.csv").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "in" / "pipe.csv")

    assert paths(tmp_path, "in/*.csv") == ["in/a.csv", "in/b.csv"]
    assert paths(tmp_path, "in/**/*.csv") == ["in/a.csv", "in/b.csv", "in/deep/d.csv"]
    assert paths(tmp_path, "in") == ["in/a.csv", "in/b.csv", "in/c.txt", "in/deep/d.csv"]
    # A file that two patterns name is one file, whatever the spelling
    assert paths(tmp_path, "in/a.csv", str(tmp_path / "in/../in/*.csv")) == ["in/a.csv", "in/b.csv"]
    # and that nothing has arrived is no error
    assert paths(tmp_path, "none", "none/*.csv") == []


def test_a_checksum_is_of_the_content(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"id\n1\n")
    (listed,) = list_arrivals((str(file),), "/")
    arrived = take_checksum(listed)
    assert arrived is not None
    assert arrived.checksum == hashlib.sha256(b"id\n1\n").hexdigest()
    assert Listed(*arrived[:3]) == listed


def test_a_file_that_changed_since_it_was_listed_has_none(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"id\n1\n")
    (listed,) = list_arrivals((str(file),), "/")
    file.write_bytes(b"id\n1\n2\n")
    assert take_checksum(listed) is None
