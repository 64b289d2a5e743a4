"""Find out whether what answers at an address is Redis at all.

Other servers close a connection on which they do not understand a word, which a Redis that is
starting or failing over also does. To a PING in plain text, though, each says who it is.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

_PING = b"PING\r\n"
_ANSWER_BYTES = 64
_TIMEOUT_S = 2.0
#: How Redis's answers begin: PONG, or an error such as a missing password.
_REDIS = (b"+", b"-")
#: How an alert of TLS begins.
_TLS = b"\x15\x03"


def what_answers(options: Mapping[str, Any]) -> str:
    """Return what a server that is not Redis answers, as a phrase; empty if it is Redis, or says
    nothing. `options`: the client's connection options. Never raises."""
    if "path" in options or "ssl_ca_certs" in options:
        return ""
    address = str(options.get("host", "localhost")), int(options.get("port", 6379))
    try:
        with socket.create_connection(address, timeout=_TIMEOUT_S) as connection:
            connection.sendall(_PING)
            answer = connection.recv(_ANSWER_BYTES)
    except OSError:
        return ""
    if not answer or answer.startswith(_REDIS):
        return ""
    if answer.startswith(_TLS):
        return "it wants TLS, so broker.url begins with rediss://"
    return f"it answers {answer!r}"
