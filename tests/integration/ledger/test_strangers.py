"""A broker's address at which something else than Redis answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ringhaul.errors import LedgerUnavailable
from ringhaul.ledger.connection import Caller, ServerUnusable, connect

#: What servers of other kinds send: at once, or when they have read something.
GREETINGS = {
    "Cassandra": b"\x85\x00\x00\x00\x00\x00\x00\x00\x30",
    "a web server": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "a web server of old": b"<!DOCTYPE HTML>\n<html>",
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "mail": b"220 mail.example.com ESMTP\r\n",
    "memcached": b"ERROR\r\n",
    "PostgreSQL": b"E\x00\x00\x00\x8cSFATAL\x00",
    "MySQL": b"J\x00\x00\x00\x0a8.0.36\x00",
    "a length that is none": b"$x\r\n",
    "a number that is none": b":x\r\n",
    "nothing of Unicode": b"\xff\xfe\xfd\r\n",
}


@contextmanager
def answering(greeting: bytes) -> Iterator[int]:
    """Run a server that answers anything with this, and closes the connection; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4096)
                    connection.sendall(greeting)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("kind", GREETINGS)
def test_a_server_of_another_kind_is_refused_at_once(kind: str) -> None:
    with answering(GREETINGS[kind]) as port:
        caller = Caller(connect(f"redis://127.0.0.1:{port}/0"))
        with pytest.raises(ServerUnusable, match=f"What answers at 127.0.0.1:{port} is not Redis"):
            caller.command("PING")
        caller.client.close()


def test_a_server_that_wants_tls_is_named() -> None:
    with answering(b"\x15\x03\x03\x00\x02\x02\x46") as port:
        caller = Caller(connect(f"redis://127.0.0.1:{port}/0"))
        with pytest.raises(ServerUnusable, match="is not Redis"):
            caller.command("PING")
        caller.client.close()


@pytest.mark.parametrize("answer", [b"", b"-LOADING Redis is loading the dataset in memory\r\n"])
def test_a_server_that_may_be_redis_is_waited_for(answer: bytes) -> None:
    with answering(answer) as port:
        caller = Caller(connect(f"redis://127.0.0.1:{port}/0"), patience_ms=200)
        with pytest.raises(LedgerUnavailable, match=r"Is the address right \(broker.url\)\?"):
            caller.command("PING")
        caller.client.close()


def test_a_silent_server_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"redis://127.0.0.1:{server.getsockname()[1]}/0"
        caller = Caller(connect(url, timeout_s=0.2), patience_ms=100)
        with pytest.raises(LedgerUnavailable, match=r"Is the address right \(broker.url\)\?"):
            caller.command("PING")
        caller.client.close()
