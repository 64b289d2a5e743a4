"""The folder of a process: its own while it lives, and anybody's to remove afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from ringhaul.run_folder import UNLOCKED_S, remove_dead, remove_own, run_folder

#: Makes a folder, and forks a child that outlives it.
OWNER = """
import os, sys, time
from pathlib import Path
from ringhaul.run_folder import run_folder
folder = run_folder(Path(sys.argv[1]))
(folder / "deep").mkdir()
(folder / "deep" / "file").touch()
if sys.argv[2] == "fork" and not os.fork():
    os.close(1)
    time.sleep(60)
    os._exit(0)
print(folder, flush=True)
sys.stdin.read()
"""


def owner(state: Path, how: str = "") -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(state), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_process_removes_its_folder_at_its_end(tmp_path: Path) -> None:
    process, folder = owner(tmp_path)
    assert folder.parent == tmp_path / "run" and folder.stat().st_mode & 0o777 == 0o700
    process.communicate("")
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_living_process_stays_and_of_a_killed_one_goes(tmp_path: Path) -> None:
    first, kept = owner(tmp_path)
    second, left = owner(tmp_path)
    remove_dead(tmp_path)
    assert (kept / "deep" / "file").exists() and left.exists()
    second.kill()
    second.communicate()
    mine = run_folder(tmp_path)  # which looks for dead ones, too
    assert not left.exists() and kept.exists() and mine == run_folder(tmp_path)
    remove_dead(tmp_path)
    assert mine.exists()
    remove_own()
    assert not mine.exists() and kept.exists()
    first.communicate("")
    assert list(tmp_path.iterdir()) == []


def test_a_child_that_outlives_its_parent_keeps_no_folder(tmp_path: Path) -> None:
    process, folder = owner(tmp_path, "fork")
    process.kill()
    process.wait()
    try:
        remove_dead(tmp_path)
        assert not folder.exists()
    finally:
        os.killpg(process.pid, 9)
        process.communicate()


def test_a_folder_without_a_lock_is_left_alone_for_a_while(tmp_path: Path) -> None:
    young, old = tmp_path / "run" / "1-a", tmp_path / "run" / "1-b"
    for folder in (young, old):
        folder.mkdir(parents=True)
    long_ago = time.time() - UNLOCKED_S - 1
    os.utime(old, (long_ago, long_ago))
    remove_dead(tmp_path)
    assert young.exists() and not old.exists()


def test_a_state_folder_that_is_missing_is_none_of_our_business(tmp_path: Path) -> None:
    remove_dead(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []
