"""One HTTP request and its answer, over a new connection.

`http.client` sends a body to its end before it reads. A server that refuses an upload of a GiB says
so at once, and takes no more: so this client looks for an answer before each piece of the body.
"""

from __future__ import annotations

import http.client
import io
import re
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

#: How long a host may take to accept a connection, and then to agree on TLS.
CONNECT_S = 5.0
#: What is read of an answer's body.
_BODY_BYTES = 64 * 1024
_PIECE_BYTES = 256 * 1024
#: Pauses that a server wants, in seconds; it may also name a date, which is ignored.
_SECONDS = re.compile(r"\s*([0-9]{1,9})\s*")
_READ, _WRITE = select.POLLIN, select.POLLOUT
#: What OpenSSL raises when it must wait for the network.
_NOT_YET = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
#: Parts of OpenSSL's reasons that no retry cures, also after the handshake: with TLS 1.3 a server
#: looks at the client's certificate later.
_TLS_REFUSALS = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED", "HANDSHAKE_FAILURE")


class TlsRefused(Exception):
    """The two sides do not agree on TLS: another certificate is needed, or none."""


class NoHttp(OSError):
    """A server's answer is not HTTP."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """Where requests go."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    #: Without an answer, or without a byte taken, a request counts as lost.
    timeout_s: float = 60.0

    def __str__(self) -> str:
        return host_and_port(self.host, self.port)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A server's answer."""

    status: int
    reason: str
    body: bytes  #: its beginning
    retry_after_s: float | None  #: the pause that the server wants
    is_sent: bool  #: whether the server had the complete request before


def host_and_port(host: str, port: int) -> str:
    """Return a host with a port, as in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Exchange:
    """One request and its answer."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._is_aborted = False
        self._early = b""  #: of an answer, read while the body was sent

    def run(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: Iterable[bytes | memoryview] = (),
    ) -> Answer:
        """Send a request and return its answer; that may come before all of the body is sent.

        `headers`: with the length of the body. Raises `OSError`, `NoHttp` among them, and
        `TlsRefused`.
        """
        try:
            connection = self._open()
            lines = [f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
            head = "".join(f"{line}\r\n" for line in (*lines, "Connection: close", ""))
            is_sent = all(
                self._send(connection, memoryview(piece))
                for piece in chain([head.encode("latin-1")], body)
            )
            return self._answer(connection, method, is_sent=is_sent)
        except ssl.SSLError as error:
            if any(part in (error.reason or "") for part in _TLS_REFUSALS):
                raise TlsRefused(words(error)) from error
            raise
        except http.client.HTTPException as error:
            if isinstance(error, OSError):  # the connection ended before the answer
                raise
            raise NoHttp("its answer is not HTTP") from error
        finally:
            self._close()

    def abort(self) -> None:
        """End the exchange, from another thread."""
        with self._lock:
            self._is_aborted = True
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def _open(self) -> socket.socket:
        server = self._server
        connection: socket.socket = socket.create_connection((server.host, server.port), CONNECT_S)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if server.tls is None:
                self._opened(connection)
            else:
                wrapped = server.tls.wrap_socket(
                    connection, server_hostname=server.host, do_handshake_on_connect=False
                )
                connection = wrapped
                self._opened(connection)
                wrapped.do_handshake()
            connection.setblocking(False)
        except ssl.SSLEOFError:
            connection.close()
            raise
        except ssl.SSLError as error:
            connection.close()
            raise TlsRefused(words(error)) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _opened(self, connection: socket.socket) -> None:
        """Let `abort` end a connection, from its first moment on."""
        with self._lock:
            self._socket = connection
            if self._is_aborted:
                raise ConnectionAbortedError("the request was aborted")

    def _close(self) -> None:
        with self._lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None

    def _send(self, connection: socket.socket, left: memoryview) -> bool:
        """Send some bytes; return False if an answer came instead."""
        give_up_s = time.monotonic() + self._server.timeout_s
        while left:
            ready = _wait(connection, _READ | _WRITE, give_up_s)
            if ready & ~_WRITE and self._has_answer(connection):
                return False
            try:
                left = left[connection.send(left[:_PIECE_BYTES]) :]
                give_up_s = time.monotonic() + self._server.timeout_s
            except _NOT_YET:
                pass
            except (ConnectionError, ssl.SSLEOFError):
                # A server that answers and closes may do so between the two calls.
                if self._has_answer(connection):
                    return False
                raise
        return True

    def _has_answer(self, connection: socket.socket) -> bool:
        """Read the beginning of an answer; return whether there is any."""
        try:
            self._early = connection.recv(_PIECE_BYTES)
        except _NOT_YET:
            return False  # what came was part of TLS
        if not self._early:
            raise ConnectionResetError("the connection was closed")
        return True

    def _answer(self, connection: socket.socket, method: str, *, is_sent: bool) -> Answer:
        give_up_s = time.monotonic() + self._server.timeout_s
        incoming = _Incoming(connection, self._early, give_up_s)
        response = http.client.HTTPResponse(incoming, method=method)  # type: ignore[arg-type]
        with response:
            response.begin()
            body = response.read(_BODY_BYTES)
        pause = _SECONDS.fullmatch(response.headers.get("Retry-After", ""))
        return Answer(
            status=response.status,
            reason=response.reason,
            body=body,
            retry_after_s=float(pause[1]) if pause else None,
            is_sent=is_sent,
        )


class _Incoming(io.RawIOBase):
    """What comes over a connection, up to a moment: a server that sends a byte now and then must
    not keep us."""

    def __init__(self, connection: socket.socket, early: bytes, give_up_s: float) -> None:
        self._connection, self._early, self._give_up_s = connection, early, give_up_s

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return itself as `http.client` reads from a socket."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes; 0 at the end."""
        if self._early:
            count = min(len(buffer), len(self._early))
            buffer[:count], self._early = self._early[:count], self._early[count:]
            return count
        while True:
            try:
                return self._connection.recv_into(buffer)
            except ssl.SSLWantWriteError:
                _wait(self._connection, _WRITE, self._give_up_s)
            except _NOT_YET:
                _wait(self._connection, _READ, self._give_up_s)


def _wait(connection: socket.socket, events: int, give_up_s: float) -> int:
    """Return which of some events came, before a moment. Raises `TimeoutError`."""
    poll = select.poll()
    poll.register(connection, events)
    left_ms = max(0.0, give_up_s - time.monotonic()) * 1000
    ready = poll.poll(left_ms)
    if not ready:
        raise TimeoutError
    return ready[0][1]


def words(error: OSError) -> str:
    """Return what is wrong with a connection, for people."""
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, ssl.SSLEOFError):
        return "the connection was closed"
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return str(error.strerror or error)
