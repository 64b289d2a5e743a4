"""Where tables are files for a moment."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ringhaul.client.errors import ClientError, ClusterUnavailable, UsageError
from ringhaul.client.folder import LEFT_BEHIND_S, Folder


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's temporary folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_call_has_a_folder_for_this_user_alone(temporary: Path) -> None:
    with Folder().of_call() as folder:
        assert temporary in folder.parents
        for place in (folder, folder.parent):
            assert stat.S_IMODE(place.stat().st_mode) == 0o700
        (folder / "table.parquet").write_text("rows")
    assert not folder.exists()


def test_a_folder_that_others_can_read_is_refused(temporary: Path) -> None:
    place = temporary / f"ringhaul-client-{os.getuid()}"
    place.mkdir(mode=0o755)
    with pytest.raises(UsageError, match="not a folder of this user alone"), Folder().of_call():
        pass
    place.rmdir()
    place.symlink_to(temporary)
    with pytest.raises(UsageError), Folder().of_call():
        pass


def test_a_shared_folder_keeps_its_rights(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    with pytest.raises(UsageError, match="there is no such folder"), Folder(shared).of_call():
        pass
    shared.mkdir()
    shared.chmod(0o770)
    with Folder(shared).of_call() as folder:
        assert (folder.parent, stat.S_IMODE(folder.stat().st_mode)) == (shared, 0o770)


def test_the_same_content_has_the_same_name_while_it_is_used(temporary: Path) -> None:
    folder = Folder()
    names = []
    for content in ("rows", "rows", "others"):
        file = temporary / "table.parquet"
        file.write_text(content)
        with folder.named(file) as path:
            names.append(path)
            assert path.read_text() == content
        assert not path.exists()
    assert names[0] == names[1] != names[2]


def test_the_last_of_two_calls_removes_the_file(temporary: Path) -> None:
    file = temporary / "table.parquet"
    file.write_text("rows")
    first, second = Folder().named(file), Folder().named(file)
    path = first.__enter__()
    assert second.__enter__() == path
    first.__exit__(None, None, None)
    assert path.exists()
    second.__exit__(None, None, None)
    assert not path.exists()


KILLED = """
import os, sys, tempfile
tempfile.tempdir = sys.argv[1]
from ringhaul.client.folder import Folder
with Folder().of_call() as folder:
    (folder / "table.parquet").write_text("rows")
    print(folder, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_what_a_killed_program_left_is_removed(temporary: Path) -> None:
    with Folder().of_call() as in_use:
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(temporary)], capture_output=True, text=True
        )
        left = Path(done.stdout.strip())
        assert left.exists()
        starting = left.parent / "call-starting"  # another call has not made its lock yet
        starting.mkdir()
        forgotten = left.parent / "call-forgotten"
        forgotten.mkdir()
        long_ago = forgotten.stat().st_mtime - LEFT_BEHIND_S - 1
        os.utime(forgotten, (long_ago, long_ago))
        with Folder().of_call():
            assert not left.exists() and not forgotten.exists()
            assert in_use.exists() and starting.exists()


@pytest.mark.parametrize(("error", "left"), [(ClusterUnavailable("x"), 1), (UsageError("x"), 0)])
def test_a_table_stays_for_the_call_that_finishes_its_job(
    tmp_path: Path, error: ClientError, left: int
) -> None:
    (tmp_path / "t").write_bytes(b"rows")
    shared = tmp_path / "shared"
    shared.mkdir()
    folder = Folder(shared)
    with pytest.raises(ClientError), folder.named(tmp_path / "t") as path:
        before = path.stat()
        raise error
    assert len(list(shared.rglob("*.parquet"))) == left
    (tmp_path / "again").write_bytes(b"rows")
    with folder.named(tmp_path / "again") as same:
        assert same == path and os.path.samestat(same.stat(), before) is bool(left)
    assert not list(shared.rglob("*.parquet"))
