"""The host name under which this worker is known. Its node name (`--hostname worker1@host1`) holds
it, and it may differ from the machine's."""

from __future__ import annotations

import socket

_nodename = ""


def set_nodename(name: str) -> None:
    """Set the worker's node name for this process and its forks."""
    global _nodename
    _nodename = name


def worker_host() -> str:
    """Return the host in the worker's node name, or the machine's if it has none."""
    return _nodename.partition("@")[2] or socket.gethostname()
