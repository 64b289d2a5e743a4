"""Servers outlive the command that starts them; stopping them hits no other process."""

import os
import time
from pathlib import Path

import pytest

from producer.local import processes
from producer.local.processes import is_ours, rss_bytes, start_server, stop_servers

STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.05; done"


def start(tmp_path: Path, script: str, proof: str) -> int:
    return start_server(["/bin/sh", "-c", script, proof], log=tmp_path / "log", cwd=tmp_path)


def wait_for_log(tmp_path: Path, text: str) -> None:
    deadline = time.monotonic() + 10
    while text not in (tmp_path / "log").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_server_has_its_own_session_and_log(tmp_path: Path) -> None:
    pid = start(tmp_path, "echo out; echo err >&2; while :; do sleep 0.05; done", "mine")
    try:
        wait_for_log(tmp_path, "err")
        assert os.getsid(pid) == pid
        assert is_ours(pid, "mine")
        assert not is_ours(pid, "min"), "the proof is a whole argument"
        assert rss_bytes(pid) > 0
        assert (tmp_path / "log").read_text() == "out\nerr\n"
    finally:
        stop_servers([(pid, "mine")], timeout_s=10)
    assert not is_ours(pid, "mine")
    assert rss_bytes(pid) == 0


def test_another_process_with_the_pid_is_left_alone(tmp_path: Path) -> None:
    pid = start(tmp_path, "while :; do sleep 0.05; done", "somebody-else")
    try:
        stop_servers([(pid, "mine")], timeout_s=0)
        assert is_ours(pid, "somebody-else")
    finally:
        stop_servers([(pid, "somebody-else")], timeout_s=0)


def test_a_server_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    pid = start(tmp_path, STUBBORN, "mine")
    wait_for_log(tmp_path, "ready")
    before = time.monotonic()
    stop_servers([(pid, "mine")], timeout_s=0.3)
    assert 0.3 <= time.monotonic() - before < 10
    assert not is_ours(pid, "mine")


def test_a_pid_without_a_process_is_not_ours(tmp_path: Path) -> None:
    pid = start(tmp_path, "exit 0", "mine")
    deadline = time.monotonic() + 10
    while is_ours(pid, "mine"):
        assert time.monotonic() < deadline
        time.sleep(processes.POLL_S)
    stop_servers([(pid, "mine")], timeout_s=1)


def test_a_program_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        start_server([str(tmp_path / "none")], log=tmp_path / "log", cwd=tmp_path)
