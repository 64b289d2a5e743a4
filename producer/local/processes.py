"""Start servers that outlive the command, and stop them by pid without hitting a stranger.

A pid that was written down may belong to somebody else by now. A server of ours carries its own
data folder on its command line, so that folder is the proof asked for before any signal. A port
may belong to somebody else as well: whatever answers there is ours only if our process listens.
"""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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


def listens(pid: int, address: str, port: int) -> bool:
    """Say whether `pid` itself accepts connections at `address` and `port`."""
    try:
        sockets = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return False
    return any(_covers(one, address, port) for one in sockets)


def listener(address: str, port: int) -> str:
    """Name the process that accepts connections at `address` and `port`, as far as it can be seen.

    The system shows processes of other users only to root.
    """
    try:
        sockets = psutil.net_connections("tcp")
        pids = {one.pid for one in sockets if _covers(one, address, port)} - {None}
        if len(pids) == 1:
            (pid,) = pids
            return f"process {pid} ({psutil.Process(pid).name()})"
    except psutil.Error:
        pass
    return "another process"


def _covers(one: Any, address: str, port: int) -> bool:
    """Say whether a socket of psutil's accepts connections to `address` and `port`."""
    if one.status != psutil.CONN_LISTEN or not one.laddr or one.laddr.port != port:
        return False
    # Java listens on IPv6 sockets, where the kernel shows ::ffff:127.0.0.1.
    return one.laddr.ip.removeprefix("::ffff:") in (address, "0.0.0.0", "::")


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
