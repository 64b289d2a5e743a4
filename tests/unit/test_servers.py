"""Processes that need a shared node at once get one, and the run's end leaves none."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from producer.local import processes
from tests import servers
from tests.acceptance.command import wait_until
from tests.servers import KINDS, ORDINARY, RUN_VARIABLE, STRICT, SharedServers, processes_of


class PlayedStack:
    """A stack that starts a `sleep` with its folder on the command line."""

    def __init__(self, folder: Path, cache: Path, **_: object) -> None:
        self._pid = folder / "pid"
        self.valkey = SimpleNamespace(pid=None)

    def up(self, *_: object, **__: object) -> None:
        time.sleep(0.2)  # others come meanwhile
        with self._pid.with_suffix(".all").open("a") as starts:
            process = subprocess.Popen(
                [sys.executable, "-c", "import time; time.sleep(60)", str(self._pid)],
                start_new_session=True,
            )
            process.returncode = 0  # as `start_server` does
            starts.write(f"{process.pid}\n")
        self._pid.write_text(str(process.pid))

    def nodes(self) -> list[SimpleNamespace]:
        if not self._pid.exists():
            return []
        pid = int(self._pid.read_text())
        return [SimpleNamespace(pid=pid, proof=str(self._pid), folder=self._pid.parent)]


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SharedServers:
    monkeypatch.setattr(servers, "Stack", PlayedStack)
    (tmp_path / "run").mkdir()
    return SharedServers(tmp_path / "run")


def test_processes_that_come_at_once_get_one_node(shared: SharedServers) -> None:
    context = multiprocessing.get_context("fork")
    comers = [context.Process(target=shared.node) for _ in range(3)]
    for comer in comers:
        comer.start()
    for comer in comers:
        comer.join()
        assert comer.exitcode == 0
    # Its starter has ended
    node = shared.node()
    assert node.data == shared.folder / "ordinary state" / "data"
    assert node.jmx_port > 0
    assert node.jmx_password_file.stat().st_mode & 0o777 == 0o600
    (pid,) = (shared.folder / "ordinary state" / "pid.all").read_text().split()
    assert shared.pids() == [int(pid)]
    wait_until(lambda: shared.core_s() > 0, "the start of Python")
    shared.node(STRICT)
    pids = shared.pids()
    assert len(pids) == 2
    shared.stop()
    assert not any(processes.rss_bytes(pid) for pid in pids)
    assert not shared.folder.exists()


def test_a_node_whose_starter_died_is_stopped_too(shared: SharedServers) -> None:
    shared.node()
    (pid,) = shared.pids()
    (shared.folder / "ordinary state" / "started.json").unlink()
    shared.stop()
    assert not processes.rss_bytes(pid)


def test_a_run_without_a_node_stops_none(shared: SharedServers) -> None:
    assert shared.pids() == []
    assert shared.core_s() == 0
    shared.stop()
    assert not shared.folder.exists()


def test_what_processes_of_a_run_left_behind_is_killed(shared: SharedServers) -> None:
    def sleep(run: Path, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", "import time; time.sleep(60)", *words]
        return subprocess.Popen(command, env=os.environ | {RUN_VARIABLE: str(run)})

    left, ends_itself = sleep(shared.folder, "left"), sleep(shared.folder, "fork_server.py")
    of_others = sleep(shared.folder / "other")
    wait_until(lambda: len(processes_of(shared.folder)) == 1, "the start of Python")
    (said,) = shared.stop()
    assert said == f"{left.pid} {' '.join(left.args)}"  # type: ignore[arg-type]
    assert left.wait() == -signal.SIGKILL
    for process in (ends_itself, of_others):
        assert process.poll() is None
        process.kill()
        process.wait()


def test_kinds_have_names_and_limits_of_their_own() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert json.dumps(dict(ORDINARY.settings)) != json.dumps(dict(STRICT.settings))
