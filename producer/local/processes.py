"""Start servers that outlive the command, and stop them by pid without hitting another process.

A stored pid may have been reused. Our servers have their data folder on the command line, so that
folder is the proof checked before any signal. A port may have been reused as well: a server that
answers there is ours only if our process listens on it.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

#: Polling interval of waits, in seconds.
POLL_S = 0.05
#: A process without arguments for this long has none at all (a kernel thread).
_NO_ARGUMENTS_S = 2.0


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C within the block, which ends soon: it lets go of servers that would stay.

    Has no effect in other threads than the main one, which Python does not interrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        # None: set by other code than Python's.
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)


def start_server(argv: Sequence[str], log: Path, cwd: Path) -> int:
    """Start `argv` in a new session, which Ctrl-C in the command's terminal does not reach.

    Standard output and error are appended to `log`. Return the pid.
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
    # Commands find the server again by its pid and command line. Set this so that Popen does not
    # warn about a child that is still running.
    process.returncode = 0
    return process.pid


def is_ours(pid: int, proof: str) -> bool:
    """Return whether `pid` runs and has the argument `proof`, which names the data folder."""
    _reap(pid)
    try:
        return proof in _command_line(pid)
    except psutil.Error:
        return False


def listens(pid: int, address: str, port: int) -> bool:
    """Return whether `pid` itself accepts connections at `address` and `port`."""
    try:
        sockets = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return False
    return any(_covers(one, address, port) for one in sockets)


def listener(address: str, port: int) -> str:
    """Return a name for the process that accepts connections at `address` and `port`.

    It is unspecific if the process is hidden: only root sees processes of other users.
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
    """Return whether a psutil socket accepts connections to `address` and `port`."""
    if one.status != psutil.CONN_LISTEN or not one.laddr or one.laddr.port != port:
        return False
    # Java listens on IPv6 sockets, where the kernel shows ::ffff:127.0.0.1.
    return one.laddr.ip.removeprefix("::ffff:") in (address, "0.0.0.0", "::")


def rss_bytes(pid: int) -> int:
    """Return the resident memory of `pid` in bytes; 0 if it is gone."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def stop_servers(servers: Sequence[tuple[int, str]], timeout_s: float) -> None:
    """Stop each (pid, proof) that is ours: SIGTERM first, and SIGKILL after `timeout_s`.

    `timeout_s=0` kills at once. Return when all are gone.
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
    """Wait until all servers have exited; return the servers that still run after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        servers = [(pid, proof) for pid, proof in servers if is_ours(pid, proof)]
        if not servers or time.monotonic() >= deadline:
            return servers
        time.sleep(POLL_S)


def _command_line(pid: int) -> list[str]:
    """Return the arguments of `pid`.

    While it starts or exits, a process briefly has none. Wait for that moment to pass, so that a
    server is not missed, or taken for gone while it still holds its ports.
    Raises `psutil.Error` if the process is gone.
    """
    process = psutil.Process(pid)
    deadline = time.monotonic() + _NO_ARGUMENTS_S
    while True:
        arguments: list[str] = process.cmdline()
        if arguments or time.monotonic() >= deadline:
            return arguments
        time.sleep(0.001)


def _reap(pid: int) -> None:
    """Reap the server if it is our own child and has exited, so that it does not stay a zombie."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
