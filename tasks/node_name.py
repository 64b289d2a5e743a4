"""By which host this worker is known: the one in its name, as in `--hostname worker1@host1`, which
may be another than the machine's own."""

from __future__ import annotations

import socket

_nodename = ""


def set_nodename(name: str) -> None:
    """Tell this process, and those that it forks, the name of its worker."""
    global _nodename
    _nodename = name


def worker_host() -> str:
    """The host in the worker's name, else the machine's."""
    return _nodename.partition("@")[2] or socket.gethostname()
