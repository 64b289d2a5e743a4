"""Spool folders of killed commands are removed, those of running commands are not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path

from producer.outputs.stdout_spool import spool_folder

#: A command that reports when its folder has a part, and runs until it is ended.
HOLDER = """
import pathlib, sys
from producer.outputs.stdout_spool import spool_folder
folder = pathlib.Path(sys.argv[1])
with spool_folder(folder):
    (folder / "part").touch()
    print(flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline() == b"\n"
    return process


def test_the_folder_lives_as_long_as_the_command(tmp_path: Path) -> None:
    spool = tmp_path / "state" / "spool"
    with spool_folder(spool / "ul-1"):
        assert (spool / "ul-1").stat().st_mode & 0o777 == 0o700
        # A second command with the same --job-id
        with spool_folder(spool / "ul-1"), spool_folder(spool / "ul-2"):
            assert sorted(os.listdir(spool)) == ["ul-1", "ul-2"]
    assert os.listdir(spool) == []


def test_a_worker_that_still_writes_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "spool" / "ul-1"
    begun = threading.Event()

    def write() -> None:
        try:
            for n in count():
                (folder / f"{n}.part").touch()
                begun.set()
        except FileNotFoundError:
            pass

    for _ in range(10):
        begun.clear()
        worker = threading.Thread(target=write, daemon=True)
        with spool_folder(folder):
            worker.start()
            assert begun.wait(10)
        worker.join(10)
        assert not worker.is_alive()
        assert os.listdir(folder.parent) == []


def test_only_the_folder_of_a_killed_command_is_removed_by_the_next(tmp_path: Path) -> None:
    # Given a killed command, a running one, and the spooled input of a job
    (tmp_path / "ld-1.csv").write_text("id\n1\n")
    (tmp_path / "elsewhere").symlink_to(tmp_path.parent)
    living, killed = holder(tmp_path / "ul-living"), holder(tmp_path / "ul-killed")
    with living, killed:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert (tmp_path / "ul-killed" / "part").exists()
        # When the next one starts
        with spool_folder(tmp_path / "ul-next"):
            assert sorted(os.listdir(tmp_path)) == [
                *("elsewhere", "ld-1.csv", "ul-living", "ul-next"),
            ]
        # Then the parts of the running one stay until it ends
        assert os.listdir(tmp_path / "ul-living") == ["part"]
        living.communicate()
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "ld-1.csv"]
    assert living.returncode == 0
