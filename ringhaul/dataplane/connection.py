"""One connection of the data plane: a socket to a replica, its window, its unread responses.

It is opened with what the driver knows (address, TLS context, authenticator, compression) and used
without the driver. The handshake blocks; after it the socket never does. Only this module knows
about TLS, and that frames may be compressed.
"""

from __future__ import annotations

import math
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, Generic

from cassandra.cluster import Cluster
from cassandra.pool import Host

from ringhaul.cluster.errors import NOT_TAKEN_HINT
from ringhaul.cql.compressed_frames import compress_frames, expand_frames
from ringhaul.cql.frames import (
    PROTOCOL_VERSION,
    RESPONSE_VERSION,
    FrameError,
    Opcode,
    Parsed,
    Reader,
    Reply,
    auth_response_body,
    frame,
    parse_replies,
    read_error,
    startup_body,
)
from ringhaul.dataplane.window import Window, Work
from ringhaul.errors import ClusterError, RinghaulError

READ_BYTES = 256 * 1024
#: Send buffer of a connection to a near server, where connecting took at most this long. For a far
#: server the kernel chooses: it lets the buffer grow with the distance, but never after a size was
#: set.
SEND_BUFFER_BYTES = 512 * 1024
NEAR_CONNECT_S = 0.005
#: Stream ids of requests that are not rows: PREPARE, and the liveness probe. Windows use lower ids.
CONTROL_STREAM = 32767
PROBE_STREAM = 32766
#: How many round trips `sound` measures; it returns the shortest.
SOUNDINGS = 3


class WireError(Exception):
    """The connection cannot be opened, or cannot be used any longer."""


class WireRefused(WireError):
    """The server closed the connection before it answered: it accepts no more connections."""


class WireUnsupported(RinghaulError):
    """The server does not support the data plane's protocol; the driver strategies still work."""

    def without_fallback(self, command: str) -> ClusterError:
        """Return a final error instead, for commands that have no driver-based fallback."""
        return ClusterError(
            f"{command} needs version {PROTOCOL_VERSION} of the native protocol, and the cluster "
            f"does not speak it: {self}"
        )


class NodeConnection(Generic[Work]):
    """An open, authenticated connection. Every method raises `WireError` once it has ended."""

    def __init__(
        self, host: Host, cluster: Cluster, window: Window[Work], *, timeout_s: float
    ) -> None:
        """Connect and log in within `timeout_s`. Raises `WireError` or `WireUnsupported`."""
        self.host = host
        self.window = window
        #: When the unanswered request on CONTROL_STREAM was sent.
        self.control_sent_at_s: float | None = None
        #: When the server was probed, if it has not answered yet.
        self.probed_at_s: float | None = None
        #: Until when all other replicas were silent as well: that time does not count as silence.
        self.excused_at_s = -math.inf
        self.closed = False
        self._out: deque[memoryview] = deque()
        self._blocked = False  # the socket's send buffer is full
        self._rest = b""
        self._compressed = compression_of(cluster) != ""
        self._packed = b""  # the beginning of a frame that may be compressed
        self._needs_read = False
        try:
            self._socket, distance_s = _open(host, cluster, time.monotonic() + timeout_s)
        except ConnectionResetError as error:
            raise _refused(host) from error
        except (OSError, FrameError) as error:
            raise WireError(f"{host.address}: {error}") from error
        #: `used_at_s`: when data last came; `_moved_at_s`: when a full socket last took more.
        self.opened_at_s = self.used_at_s = self._moved_at_s = time.monotonic()
        window.distance.saw(distance_s, self.opened_at_s)

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def wants_write(self) -> bool:
        """Whether data waits for the socket to become writable."""
        return bool(self._out) and not self._needs_read

    @property
    def busy(self) -> bool:
        """Whether some request is unanswered."""
        return self.window.requests > 0 or self.control_sent_at_s is not None

    def waits_since_s(self) -> float | None:
        """Return when the oldest unanswered request was sent."""
        oldest = self.window.oldest_sent_at_s()
        if oldest is None or self.control_sent_at_s is None:
            return self.control_sent_at_s if oldest is None else oldest
        return min(oldest, self.control_sent_at_s)

    def silent_since_s(self) -> float | None:
        """Return since when rows wait without any data coming; None if no row waits.

        The server cannot answer what it has not been sent yet: a socket that takes more data does
        not count as silent.
        """
        oldest = self.window.oldest_sent_at_s()
        return None if oldest is None else max(oldest, self.used_at_s, self._moved_at_s)

    def probe(self) -> None:
        """Probe whether the server lives, unless a probe is pending; see `take_probe`."""
        if self.probed_at_s is None:
            self.probed_at_s = time.monotonic()
            self.put(memoryview(frame(Opcode.OPTIONS, b"", PROBE_STREAM)))

    def take_probe(self, reply: Reply) -> bool:
        """Return whether this is the response to `probe`. Any response means the server lives."""
        if reply.stream != PROBE_STREAM or self.probed_at_s is None:
            return False
        self.probed_at_s = None
        return True

    def send_control(self, opcode: Opcode, body: bytes) -> None:
        """Send a request that is not a row; its response comes on CONTROL_STREAM."""
        self.control_sent_at_s = time.monotonic()
        self.put(memoryview(frame(opcode, body, CONTROL_STREAM)))

    def put(self, data: memoryview) -> None:
        """Send what can be sent now and keep the rest; the bytes must not change until then.

        `data`: complete frames.
        """
        self._out.append(memoryview(compress_frames(data)) if self._compressed else data)
        self.push()

    def push(self) -> None:
        """Send waiting data until the socket is full."""
        try:
            while self._out:
                data = self._out[0]
                sent = self._socket.send(data)
                if self._blocked:
                    self._moved_at_s = time.monotonic()
                if sent < len(data):
                    self._out[0] = data[sent:]  # TLS takes one record at a time: continue
                else:
                    self._out.popleft()
            self._blocked = False
        except (BlockingIOError, ssl.SSLWantWriteError):
            self._blocked = True
        except ssl.SSLWantReadError:
            self._needs_read = True  # TLS needs to read before it can write
        except OSError as error:
            raise WireError(f"{self.host.address}: {error}") from error

    def pull(self) -> Parsed:
        """Return the responses received so far. Raises `FrameError` for malformed responses."""
        data = self.receive()
        parsed = parse_replies(data)
        self.keep(data[parsed.consumed_bytes :])
        return parsed

    def receive(self) -> bytes:
        """Return the bytes kept from the last time, and the bytes received since.

        Raises `FrameError` for a compressed frame that cannot be unpacked.
        """
        if self._compressed:
            received = self._receive(self._packed)
            data, consumed_bytes = expand_frames(received)
            self._packed = received[consumed_bytes:]
            data = self._rest + data
        else:
            data = self._receive(self._rest)
        self._rest = b""
        return data

    def _receive(self, before: bytes) -> bytes:
        """Return what comes after `before`, with it."""
        chunks = [before] if before else []
        got_any = False
        while True:
            try:
                chunk = self._socket.recv(READ_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            except OSError as error:
                raise WireError(f"{self.host.address}: {error}") from error
            if not chunk:
                if got_any:
                    break  # handle what came before the end; the next call meets the end again
                raise WireError(f"{self.host.address}: the server closed the connection")
            chunks.append(chunk)
            got_any = True
            # Polling does not see what TLS has decrypted already, so read until that is empty. For
            # a response of megabytes, also read all that has come: fewer, larger pieces are cheaper
            # to join.
            large = len(before) >= READ_BYTES
            if not isinstance(self._socket, ssl.SSLSocket) and not large:
                break
        self.used_at_s = time.monotonic()
        self._needs_read = False
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def keep(self, rest: bytes) -> None:
        """Keep the beginning of an incomplete response for the next `receive`."""
        self._rest = rest

    def close(self) -> None:
        self.closed = True
        self._out.clear()
        self._socket.close()


def compression_of(cluster: Cluster) -> str:
    """Return the compression that the driver's connections use; empty: none."""
    return cluster.compression if isinstance(cluster.compression, str) else ""


def wait(
    connections: Iterable[NodeConnection[Any]], timeout_s: float
) -> tuple[list[NodeConnection[Any]], list[NodeConnection[Any]]]:
    """Wait for events; return the readable connections and the writable connections."""
    poll, by_number = select.poll(), {}
    for connection in connections:
        by_number[connection.fileno()] = connection
        poll.register(connection, select.POLLIN | (select.POLLOUT if connection.wants_write else 0))
    events = poll.poll(timeout_s * 1000)
    # Hang-ups and errors show up when reading.
    readable = [by_number[number] for number, event in events if event & ~select.POLLOUT]
    return readable, [by_number[number] for number, event in events if event & select.POLLOUT]


def sound(host: Host, cluster: Cluster, *, timeout_s: float) -> float:
    """Return the seconds of a round trip to a server, over a connection without other requests.

    The server answers before it knows the client, and does not queue the answer with its work.
    Raises `WireError`.
    """
    deadline_s = time.monotonic() + timeout_s
    took_s = math.inf
    try:
        with _connect(host, cluster, deadline_s) as connection:
            for _ in range(SOUNDINGS):
                began_s = time.monotonic()
                connection.sendall(frame(Opcode.OPTIONS, b"", PROBE_STREAM))
                _receive(connection, host, deadline_s, compressed=False)
                took_s = min(took_s, time.monotonic() - began_s)
    except (OSError, FrameError, WireUnsupported) as error:
        raise WireError(f"{host.address}: {error}") from error
    return took_s


def _open(host: Host, cluster: Cluster, deadline_s: float) -> tuple[socket.socket, float]:
    """Return a connected, logged-in, non-blocking socket, and the seconds of a round trip on it."""
    connection = _connect(host, cluster, deadline_s)
    try:
        distance_s = _log_in(connection, host, cluster, deadline_s)
        connection.settimeout(0)
    except BaseException:
        connection.close()
        raise
    return connection, distance_s


def _connect(host: Host, cluster: Cluster, deadline_s: float) -> socket.socket:
    """Return a connected socket, wrapped in TLS if the driver has a context for it."""
    address, port = host.endpoint.resolve()
    began_s = time.monotonic()
    plain = socket.create_connection((address, port), timeout=_left_s(deadline_s))
    near = time.monotonic() - began_s <= NEAR_CONNECT_S
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if near:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        if cluster.ssl_context is None:
            return plain
        # The host name to verify is chosen as in the driver.
        options = {**(cluster.ssl_options or {}), **(host.endpoint.ssl_options or {})}
        checked = host.endpoint.address if cluster.ssl_context.check_hostname else None
        plain.settimeout(_left_s(deadline_s))
        wrapped: ssl.SSLSocket = cluster.ssl_context.wrap_socket(
            plain, server_hostname=options.get("server_hostname", checked)
        )
        return wrapped
    except BaseException:
        plain.close()
        raise


def _left_s(deadline_s: float) -> float:
    """Return the seconds until the deadline. Raises `TimeoutError` if it has passed."""
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("timed out")
    return left_s


def _log_in(connection: socket.socket, host: Host, cluster: Cluster, deadline_s: float) -> float:
    """Send STARTUP and authenticate (sections 4.1.1, 4.2.3 and 4.2.7 of the protocol).

    Return the seconds from STARTUP to its response, which waits for nothing.
    """
    compression = compression_of(cluster)
    compressed = compression != ""
    began_s = time.monotonic()
    try:
        connection.sendall(frame(Opcode.STARTUP, startup_body(compression)))
    except (ConnectionResetError, BrokenPipeError) as ended:
        raise _refused(host) from ended
    reply = _receive(connection, host, deadline_s, compressed=compressed)
    took_s = time.monotonic() - began_s
    if reply.opcode == Opcode.AUTHENTICATE:
        authenticator = _authenticator(reply, host, cluster)
        connection.sendall(
            frame(Opcode.AUTH_RESPONSE, auth_response_body(authenticator.initial_response()))
        )
        while (
            reply := _receive(connection, host, deadline_s, compressed=compressed)
        ).opcode == Opcode.AUTH_CHALLENGE:
            answer = authenticator.evaluate_challenge(Reader(reply.body).read_bytes())
            connection.sendall(frame(Opcode.AUTH_RESPONSE, auth_response_body(answer)))
        if reply.opcode == Opcode.AUTH_SUCCESS:
            authenticator.on_authentication_success(Reader(reply.body).read_bytes())
    if reply.opcode == Opcode.ERROR:
        error = read_error(reply.body)
        if error.name == "protocol_error":
            raise WireUnsupported(f"{host.address}: {error.message}")
        raise WireError(f"{host.address}: {error.message}")
    if reply.opcode not in (Opcode.READY, Opcode.AUTH_SUCCESS):
        raise WireError(f"{host.address}: STARTUP was answered by message {reply.opcode:#04x}")
    return took_s


def _refused(host: Host) -> WireRefused:
    return WireRefused(f"{host.address} closes new connections before it answers: {NOT_TAKEN_HINT}")


def _authenticator(reply: Reply, host: Host, cluster: Cluster):  # type: ignore[no-untyped-def]
    if cluster.auth_provider is None:
        raise WireError(f"{host.address} asks for a user and none is set")
    authenticator = cluster.auth_provider.new_authenticator(host.address)
    authenticator.server_authenticator_class = Reader(reply.body).read_string()
    return authenticator


def _receive(
    connection: socket.socket, host: Host, deadline_s: float, *, compressed: bool
) -> Reply:
    """Return the next response of the handshake."""
    data = b""
    while True:
        try:
            parsed = parse_replies(expand_frames(data).data if compressed else data)
        except FrameError as error:
            if data[0] != RESPONSE_VERSION:
                raise WireUnsupported(f"{host.address} speaks another protocol: {error}") from error
            raise
        if parsed.others:
            return parsed.others[0]
        connection.settimeout(_left_s(deadline_s))
        try:
            chunk = connection.recv(READ_BYTES)
        except ConnectionResetError as error:
            if data:
                raise
            raise _refused(host) from error
        if not chunk and not data:
            raise _refused(host)
        if not chunk:
            raise OSError("the server closed the connection during the handshake")
        data += chunk
