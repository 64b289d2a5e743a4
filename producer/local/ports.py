"""Choose ports on loopback addresses.

Other ports than the usual ones are drawn below the range that outgoing connections use
(32768 and up on Linux): a Cassandra node opens its CQL port seconds after it was chosen, and in
that time any client may be given a port of that range.
"""

import random
import socket
import time
from collections.abc import Sequence

from producer.local.errors import LocalStackError

_CHOICE = range(15000, 32000)
_TRIES_MAX = 200
#: A killed process holds its sockets for a moment.
PATIENCE_S = 2.0


def choose_port(addresses: Sequence[str], preferred: int = 0) -> int:
    """Return `preferred` if it is free on all `addresses`, else a free port (0: any free port).

    Raises `LocalStackError` when an address cannot be bound at all.
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
    """Return `port` if it is free or becomes so within a moment, else another free one.

    For a port that a server of ours had: a killed process lets go of its sockets a little later.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not all(is_free(address, port) for address in addresses):
        if time.monotonic() >= deadline:
            break
        time.sleep(0.02)
    return choose_port(addresses, port)


def is_free(address: str, port: int) -> bool:
    """Say whether a server could listen there now."""
    with socket.socket() as probe:
        # As servers do: a connection of a former server in TIME_WAIT does not occupy the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def is_open(address: str, port: int) -> bool:
    """Say whether some process accepts connections there now."""
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
                "On macOS make it with `sudo ifconfig lo0 alias " + address + "`."
            ) from error
