"""One connection of the data plane: a socket to a replica, its window, its unread answers.

Opened with what the driver knows (address, TLS context, authenticator) and spoken to without it.
The handshake blocks; after it the socket never does. TLS is told apart only here.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections import deque
from typing import Generic

from cassandra.cluster import Cluster
from cassandra.pool import Host

from ringhaul.cql.frames import (
    HEADER_BYTES,
    FrameError,
    Opcode,
    Parsed,
    Reply,
    auth_response_body,
    frame,
    parse_replies,
    read_error,
    startup_body,
)
from ringhaul.errors import RinghaulError
from ringhaul.load.write.window import Window, Work

READ_BYTES = 256 * 1024
SEND_BUFFER_BYTES = 512 * 1024
#: Stream id of requests that are not rows (PREPARE, heartbeat); windows give out lower ones.
CONTROL_STREAM = 32767


class WireError(Exception):
    """The connection cannot be opened, or is of no more use."""


class WireUnsupported(RinghaulError):
    """The server does not speak what the data plane needs; the driver strategies still work."""


class Wire(Generic[Work]):
    """An open, authenticated connection. Every method raises `WireError` when it is gone."""

    def __init__(
        self, host: Host, cluster: Cluster, window: Window[Work], *, timeout_s: float
    ) -> None:
        """Connect and log in within `timeout_s`. Raises `WireError` or `WireUnsupported`."""
        self.host = host
        self.window = window
        self.preparing: bytes | None = None  #: the PREPARE that is not answered yet
        self.control: list[Reply] = []  #: answers on CONTROL_STREAM that nobody looked at yet
        self._out: deque[memoryview] = deque()
        self._rest = b""
        try:
            self._socket = _connect(host, cluster, timeout_s)
            _log_in(self._socket, host, cluster)
            self._socket.settimeout(0)
        except (OSError, FrameError) as error:
            raise WireError(f"{host.address}: {error}") from error
        self._used_at_s = time.monotonic()

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def wants_write(self) -> bool:
        """Something waits to be sent."""
        return bool(self._out)

    def put(self, data: memoryview) -> None:
        """Send what can be sent now and keep the rest; the bytes must not change until then."""
        self._out.append(data)
        self.push()

    def push(self) -> None:
        """Send what waits, as far as the socket takes it."""
        try:
            while self._out:
                data = self._out[0]
                sent = self._socket.send(data)
                if sent < len(data):
                    self._out[0] = data[sent:]
                    return
                self._out.popleft()
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return
        except OSError as error:
            raise WireError(f"{self.host.address}: {error}") from error

    def pull(self) -> Parsed:
        """The answers that are there now. Raises `FrameError` for what is no answer."""
        chunks = [self._rest] if self._rest else []
        while True:
            try:
                chunk = self._socket.recv(READ_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            except OSError as error:
                raise WireError(f"{self.host.address}: {error}") from error
            if not chunk:
                raise WireError(f"{self.host.address}: the server closed the connection")
            chunks.append(chunk)
            # `select` knows nothing of what TLS has decrypted already: read until it wants more.
            if not isinstance(self._socket, ssl.SSLSocket):
                break
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        parsed = parse_replies(data)
        self._rest = data[parsed.consumed_bytes :]
        self._used_at_s = time.monotonic()
        return parsed

    def alive(self, idle_s: float, timeout_s: float) -> bool:
        """Whether the connection still answers, asked with OPTIONS if it was idle for `idle_s`.

        Only for a wire with nothing unanswered.
        """
        if time.monotonic() - self._used_at_s < idle_s:
            return True
        try:
            self.put(memoryview(frame(Opcode.OPTIONS, b"", CONTROL_STREAM)))
            deadline = time.monotonic() + timeout_s
            while (left := deadline - time.monotonic()) > 0:
                select.select([self], [self] if self.wants_write else [], [], left)
                self.push()
                if any(r.opcode == Opcode.SUPPORTED for r in self.pull().others):
                    return True
        except (WireError, FrameError):
            return False
        return False

    def close(self) -> None:
        self._out.clear()
        self._socket.close()


def _connect(host: Host, cluster: Cluster, timeout_s: float) -> socket.socket:
    """A connected socket, wrapped in TLS if the driver has a context for it."""
    address, port = host.endpoint.resolve()
    plain = socket.create_connection((address, port), timeout=timeout_s)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    if cluster.ssl_context is None:
        return plain
    names = cluster.ssl_options or {}
    return cluster.ssl_context.wrap_socket(plain, server_hostname=names.get("server_hostname"))


def _log_in(connection: socket.socket, host: Host, cluster: Cluster) -> None:
    """STARTUP, and what the server asks for after it (sections 4.1.1, 4.2.3 and 4.2.7)."""
    connection.sendall(frame(Opcode.STARTUP, startup_body()))
    reply = _receive(connection)
    if reply.opcode == Opcode.AUTHENTICATE:
        authenticator = _authenticator(reply, host, cluster)
        connection.sendall(
            frame(Opcode.AUTH_RESPONSE, auth_response_body(authenticator.initial_response()))
        )
        while (reply := _receive(connection)).opcode == Opcode.AUTH_CHALLENGE:
            answer = authenticator.evaluate_challenge(_token(reply.body))
            connection.sendall(frame(Opcode.AUTH_RESPONSE, auth_response_body(answer)))
    if reply.opcode == Opcode.ERROR:
        error = read_error(reply.body)
        if error.name == "protocol_error":
            raise WireUnsupported(f"{host.address}: {error.message}")
        raise WireError(f"{host.address}: {error.message}")
    if reply.opcode not in (Opcode.READY, Opcode.AUTH_SUCCESS):
        raise WireError(f"{host.address}: STARTUP was answered by message {reply.opcode:#04x}")


def _authenticator(reply: Reply, host: Host, cluster: Cluster):  # type: ignore[no-untyped-def]
    if cluster.auth_provider is None:
        raise WireError(f"{host.address} asks for a user and none is set")
    authenticator = cluster.auth_provider.new_authenticator(host.address)
    authenticator.server_authenticator_class = reply.body[2:].decode()
    return authenticator


def _token(body: bytes) -> bytes | None:
    length = int.from_bytes(body[:4], "big", signed=True)
    return None if length < 0 else body[4 : 4 + length]


def _receive(connection: socket.socket) -> Reply:
    """The next answer of the handshake."""
    data = b""
    while True:
        try:
            parsed = parse_replies(data)
        except FrameError as error:
            if data[:1] and data[0] != 0x84:
                raise WireUnsupported(f"the server answers in another protocol: {error}") from error
            raise
        if parsed.others:
            return parsed.others[0]
        chunk = connection.recv(HEADER_BYTES if not data else READ_BYTES)
        if not chunk:
            raise WireError("the server closed the connection during the handshake")
        data += chunk
