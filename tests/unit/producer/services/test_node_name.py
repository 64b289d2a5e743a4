"""Workers of one host have different node names, and get them again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from producer.services import node_name as module
from producer.services.node_name import node_name

HOLD = """
import sys
from producer.services.node_name import node_name
print(node_name(["--loglevel", "INFO"]), flush=True)
sys.stdin.read()
"""


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(folder)},
    )


def name(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_each_worker_of_a_host_has_its_own_name(tmp_path: Path) -> None:
    processes = [start(tmp_path)]
    try:
        assert name(processes[0]) == "['--hostname', 'celery@%h']"
        processes.append(start(tmp_path))
        assert name(processes[1]) == "['--hostname', 'celery2@%h']"
        # A worker that was killed has its name again
        processes[0].kill()
        processes[0].wait()
        processes.append(start(tmp_path))
        assert name(processes[2]) == "['--hostname', 'celery@%h']"
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@pytest.mark.parametrize("given", [["-n", "a@%h"], ["-na@%h"], ["--hostname=a@%h"]])
def test_a_given_name_is_kept(given: list[str]) -> None:
    assert node_name(given) == []


def test_a_host_without_a_place_for_locks_names_workers_by_their_process(tmp_path: Path) -> None:
    assert module._name(tmp_path / "gone") == f"celery-{os.getpid()}"
    (tmp_path / "ringhaul-worker-1.lock").symlink_to(tmp_path / "elsewhere")
    assert module._name(tmp_path) == "celery2"
