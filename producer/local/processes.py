"""Start servers that outlive the command, and stop them by pid without hitting a stranger.

A pid that was written down may belong to somebody else by now. A server of ours carries its own
data folder on its command line, so that folder is the proof asked for before any signal.
"""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

#: How often a wait looks again, in seconds.
POLL_S = 0.05
#: A process that shows no arguments for this long never will (a kernel thread).
_NO_ARGUMENTS_S = 2.0


def start_server(argv: Sequence[str], log: Path, cwd: Path) -> int:
    """Start `argv` in a session of its own, so that Ctrl-C of the command does not reach it.

    Standard output and error are appended to `log`. Returns the pid.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            start_new_session=True,
        )
    # The server is found again by its pid and command line, also by other commands; telling
    # Popen so keeps it from warning about a child that is still running.
    process.returncode = 0
    return process.pid


def is_ours(pid: int, proof: str) -> bool:
    """Say whether `pid` runs and has the argument `proof` (it names the data folder)."""
    _reap(pid)
    try:
        return proof in _command_line(pid)
    except psutil.Error:
        return False


def rss_bytes(pid: int) -> int:
    """Resident memory of `pid`, 0 when it is gone."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def stop_servers(servers: Sequence[tuple[int, str]], timeout_s: float) -> None:
    """Stop each (pid, proof) that is ours: SIGTERM to all, SIGKILL to those left at `timeout_s`.

    `timeout_s=0` kills at once. Returns when all are gone.
    """
    ours = [(pid, proof) for pid, proof in servers if is_ours(pid, proof)]
    if timeout_s > 0:
        _signal(ours, signal.SIGTERM)
        ours = _wait_gone(ours, timeout_s)
    _signal(ours, signal.SIGKILL)
    _wait_gone(ours, timeout_s=30)


def _signal(servers: Sequence[tuple[int, str]], number: signal.Signals) -> None:
    for pid, proof in servers:
        if is_ours(pid, proof):
            os.kill(pid, number)


def _wait_gone(servers: list[tuple[int, str]], timeout_s: float) -> list[tuple[int, str]]:
    """Return those that still run when `timeout_s` has passed."""
    deadline = time.monotonic() + timeout_s
    while True:
        servers = [(pid, proof) for pid, proof in servers if is_ours(pid, proof)]
        if not servers or time.monotonic() >= deadline:
            return servers
        time.sleep(POLL_S)


def _command_line(pid: int) -> list[str]:
    """Return the arguments of `pid`.

    For a moment in its start and in its end a process shows none; that moment is waited out, so
    that a server is neither missed nor called gone while it still holds its ports.
    Raises `psutil.Error` when it is gone.
    """
    process = psutil.Process(pid)
    deadline = time.monotonic() + _NO_ARGUMENTS_S
    while True:
        arguments: list[str] = process.cmdline()
        if arguments or time.monotonic() >= deadline:
            return arguments
        time.sleep(0.001)


def _reap(pid: int) -> None:
    """Collect the exit of a server that is our own child, so that it does not stay a zombie."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
