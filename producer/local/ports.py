"""Choose ports on loopback addresses.

Ports other than the default ones are drawn from below the range of outgoing connections (32768 and
up on Linux): a Cassandra node opens its CQL port seconds after it was chosen, and meanwhile the
system may assign any port of that range to a client.
"""

import random
import socket
import time
from collections.abc import Sequence

from producer.local.errors import LocalStackError

_CHOICE = range(15000, 32000)
_TRIES_MAX = 200
#: How long to wait for the sockets of a killed process to close.
PATIENCE_S = 2.0


def choose_port(addresses: Sequence[str], preferred: int = 0) -> int:
    """Return `preferred` if it is free on all `addresses`, else a free port (0: any free port).

    Raises `LocalStackError` if an address cannot be bound at all.
    """
    for address in addresses:
        _check_address(address)
    candidates = [preferred] if preferred else []
    candidates += random.sample(_CHOICE, _TRIES_MAX)
    for port in candidates:
        if all(is_free(address, port) for address in addresses):
            return port
    raise LocalStackError(f"no free port on {', '.join(addresses)} after {_TRIES_MAX} tries")


def keep_port(addresses: Sequence[str], port: int) -> int:
    """Return `port` if it is free or becomes free within `PATIENCE_S`, else another free port.

    For the port of an earlier server of ours: a killed process releases its sockets with a delay.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not all(is_free(address, port) for address in addresses):
        if time.monotonic() >= deadline:
            break
        time.sleep(0.02)
    return choose_port(addresses, port)


def is_free(address: str, port: int) -> bool:
    """Return whether a server could listen on the port now."""
    with socket.socket() as probe:
        # As servers do, so that connections in TIME_WAIT do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def is_open(address: str, port: int) -> bool:
    """Return whether a process accepts connections on the port now."""
    try:
        socket.create_connection((address, port), timeout=2).close()
    except OSError:
        return False
    return True


def _check_address(address: str) -> None:
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            raise LocalStackError(
                f"{address} cannot be used on this machine: {error.strerror}. "
                "On macOS add it with `sudo ifconfig lo0 alias " + address + "`."
            ) from error
