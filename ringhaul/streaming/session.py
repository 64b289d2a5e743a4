"""Send one SSTable to one node, and wait until its rows can be read there.

A session blocks; `delivery.py` runs each in a thread. All calls have time-outs, and `abort` ends a
session from another thread.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from ringhaul.errors import EXIT_FATAL, Terminal, Transient
from ringhaul.sstables.build import Built, Contents
from ringhaul.sstables.components import DATA, DIGEST, INDEX, TOC
from ringhaul.sstables.version import SSTableVersion
from ringhaul.streaming import messages
from ringhaul.streaming.allowance import unlimited
from ringhaul.streaming.messages import HandshakeDamaged, Kind, Versions
from ringhaul.streaming.owners import Node

#: How long a node may take to accept a connection.
NODE_CONNECT_S = 5.0
#: Time without a byte sent or received after which a connection counts as dead.
STALL_S = 30.0
#: Once it has all bytes a node opens the SSTable, and builds the table's indexes of its rows.
#: Meanwhile it must answer new connections: see `_check_answers`.
COMPLETE_S = 600.0
#: How long a node that ended a connection may take to say why.
LAST_WORDS_S = 2.0
#: How often a node hears from us on a control connection, and is called while it is silent. It
#: gives up a session after three minutes without a message (`AsyncStreamingInputPlus`), and a file
#: may take longer.
KEEP_ALIVE_S = 30.0
_PIECE_BYTES = 2**20
#: Bytes requested from the limit at once, so that a load without a limit pays little for it.
_REQUEST_BYTES = 16 * _PIECE_BYTES


class NodeUnreachable(Transient):
    """A node's storage port does not answer, or a connection to it broke."""

    exit_code = EXIT_FATAL


class StreamRefused(Transient):
    """A node has discarded an SSTable, or cannot read it."""

    exit_code = EXIT_FATAL


class StreamingUnsupported(Terminal):
    """A node speaks none of our versions of the protocol, or wants encryption."""

    exit_code = EXIT_FATAL


class SSTableDamaged(Transient):
    """An SSTable is not what was built. It is built again when its unit is retried."""

    exit_code = EXIT_FATAL


@dataclass(frozen=True, kw_only=True)
class StreamedSSTable:
    """A finished SSTable. Several sessions may send it at once."""

    table: uuid.UUID
    version: SSTableVersion
    header: bytes
    first_key: bytes
    components: Sequence[tuple[str, Contents]]  #: Data.db first; without TOC.txt
    #: CRC32 of each component but Data.db, which has its digest.
    checksums: Mapping[str, int]

    @classmethod
    def of(cls, table: uuid.UUID, built: Built) -> StreamedSSTable:
        components = [(name, contents) for name, contents in built.files if name != TOC]
        small = [one for one in components if one[0] not in (DATA, INDEX)]
        return cls(
            table=table,
            version=built.version,
            header=built.header,
            first_key=built.first_key,
            components=components,
            checksums={name: _crc(contents) for name, contents in small} | {INDEX: built.index_crc},
        )

    @property
    def bytes_count(self) -> int:
        return sum(len(contents) for _, contents in self.components)

    def check(self) -> None:
        """Compare all components with their checksums, which no node does. Raises
        `SSTableDamaged`."""
        digest = dict(self.components)[DIGEST]
        for name, contents in self.components:
            if name == DATA:
                is_good = str(_crc(contents)).encode() == bytes(digest[:])
            else:
                is_good = _crc(contents) == self.checksums[name]
            if not is_good:
                raise SSTableDamaged(
                    f"{name} is not what was built: is this host's memory or disk faulty?"
                )


class StreamSession:
    """One session with one node."""

    def __init__(self, node: Node, tls: ssl.SSLContext | None = None) -> None:
        self._node, self._tls = node, tls
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._is_aborted = False
        self._said_s = time.monotonic()  #: when the node heard from us on the control connection

    def send(self, sstable: StreamedSSTable, take: Callable[[int], int] = unlimited) -> None:
        """Return when the node serves the SSTable's rows.

        `take` is called before bytes are sent, with their number, and returns how many may go.

        Raises `NodeUnreachable`, `StreamRefused`, `StreamingUnsupported` or `SSTableDamaged`; the
        node keeps nothing then, unless the connection broke while it answered.
        """
        sstable.check()
        try:
            self._send(sstable, take)
        except OSError as error:
            raise NodeUnreachable(f"{self._node}: {_words(error)}") from error
        finally:
            self._close()

    def abort(self) -> None:
        """End the session, from another thread."""
        with self._lock:
            self._is_aborted = True
            for connection in self._sockets:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _send(self, sstable: StreamedSSTable, take: Callable[[int], int]) -> None:
        plan = uuid.uuid1()
        control = self._open(sstable.version)
        sender = control.getsockname()[0]
        components = [(name, len(contents)) for name, contents in sstable.components]
        control.sendall(
            messages.session_start(sender, plan)
            + messages.announcement(sstable.table, len(components), sstable.bytes_count)
        )
        self._expect(control, Kind.PREPARE_SYNACK)
        files = self._open(sstable.version)
        try:
            files.sendall(
                messages.file_header(
                    sender,
                    plan,
                    sstable.table,
                    sstable.version,
                    sstable.header,
                    components,
                    sstable.first_key,
                )
            )
            for _, contents in sstable.components:
                for piece in _granted(contents, take):
                    files.sendall(piece)
                    self._stay_alive(control)
        except OSError:
            # A node that refuses closes this connection, and says so on the control connection.
            with suppress(TimeoutError):
                control.settimeout(LAST_WORDS_S)
                self._expect(control, Kind.RECEIVED)
            raise
        self._await_answer(control, files)
        self._expect(control, Kind.RECEIVED)
        self._expect(control, Kind.COMPLETE)

    def _await_answer(self, control: socket.socket, files: socket.socket) -> None:
        """Wait for the answer to a file. If the connection for files ends before, it must come
        soon: the node may not have noticed that there was to be a file."""
        control.settimeout(COMPLETE_S)
        if control not in self._readable(control, [files], COMPLETE_S):
            control.settimeout(LAST_WORDS_S)

    def _readable(
        self, control: socket.socket, others: Sequence[socket.socket], timeout_s: float
    ) -> list[socket.socket]:
        """Wait until the control connection, or one of others, can be read; return which can."""
        give_up_s = time.monotonic() + timeout_s
        while True:
            if _pending(control):
                return [control]
            left_s = give_up_s - time.monotonic()
            pause_s = max(0.0, min(left_s, KEEP_ALIVE_S))
            readable, _, _ = select.select([control, *others], [], [], pause_s)
            if readable or left_s <= 0:
                return readable
            self._stay_alive(control)
            try:
                self._check_answers()
            except OSError:
                # What it sent before counts.
                if not select.select([control], [], [], 0)[0]:
                    raise

    def _check_answers(self) -> None:
        """Raise `OSError` for a node that no longer greets connections. A node that builds indexes
        does; if a node hangs, only its system still accepts connections."""
        connection, _ = connect(self._node, self._tls, self._opened)
        connection.close()

    def _stay_alive(self, control: socket.socket) -> None:
        """Let the node hear from us now and then."""
        if time.monotonic() - self._said_s < KEEP_ALIVE_S:
            return
        self._said_s = time.monotonic()
        with suppress(OSError):  # the node may have sent its last message
            control.sendall(bytes([Kind.KEEP_ALIVE]))

    def _open(self, version: SSTableVersion) -> socket.socket:
        connection, versions = connect(self._node, self._tls, self._opened)
        if version > versions.sstables:
            raise StreamRefused(
                f"{self._node} takes no SSTables of version {version}, as the nodes did when the "
                "job was planned: use one storage_compatibility_mode on all nodes, or start "
                "another load"
            )
        return connection

    def _opened(self, connection: socket.socket) -> None:
        """Let `abort` end a connection, from its first moment on."""
        with self._lock:
            self._sockets.append(connection)
            if self._is_aborted:
                raise ConnectionAbortedError("the session was aborted")

    def _close(self) -> None:
        with self._lock:
            for connection in self._sockets:
                connection.close()
            self._sockets = []

    def _expect(self, control: socket.socket, wanted: Kind) -> None:
        """Wait for a message on the control connection."""
        while True:
            if not self._readable(control, [], control.gettimeout() or STALL_S):
                raise TimeoutError
            number = _received(control, 1)[0]
            try:
                kind = Kind(number)
            except ValueError:
                raise StreamRefused(f"{self._node} sent an unknown message, {number}") from None
            if kind is Kind.SESSION_FAILED:
                raise StreamRefused(
                    f"{self._node} discarded an SSTable; its system.log says why, in lines with "
                    "'Stream'"
                )
            if kind is Kind.PREPARE_SYNACK:
                count = _received(control, messages.COUNT_BYTES)
                _received(control, messages.summaries_bytes(count))
            elif kind in messages.BODY_BYTES:
                _received(control, messages.BODY_BYTES[kind])
            if kind is wanted:
                return
            if kind is not Kind.KEEP_ALIVE:
                raise StreamRefused(f"{self._node} answers {kind.name} instead of {wanted.name}")


def connect(
    node: Node,
    tls: ssl.SSLContext | None,
    opened: Callable[[socket.socket], None] = lambda _: None,
) -> tuple[socket.socket, Versions]:
    """Open a connection for streaming, and return it with the node's versions.

    `opened` is called with the connection before anything is sent to the node.

    Raises `OSError`, or `StreamingUnsupported` for a node that speaks another version or wants
    encryption.
    """
    connection: socket.socket = socket.create_connection((node.address, node.port), NODE_CONNECT_S)
    try:
        connection.settimeout(STALL_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is None:
            opened(connection)
        else:
            wrapped = tls.wrap_socket(
                connection, server_hostname=node.address, do_handshake_on_connect=False
            )
            connection = wrapped
            opened(connection)
            wrapped.do_handshake()
        connection.sendall(messages.hello(connection.getsockname()[0]))
        versions = _versions(connection, node)
    except ssl.SSLError as error:
        connection.close()
        raise StreamingUnsupported(
            f"TLS with {node} failed: {_words(error)}; check streaming.tls_ca, tls_cert and tls_key"
        ) from error
    except BaseException:
        connection.close()
        raise
    return connection, versions


def wants_encryption(node: Node) -> bool:
    """Return whether a node's storage port answers TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        suppress(OSError),
        closing(socket.create_connection((node.address, node.port), NODE_CONNECT_S)) as plain,
    ):
        plain.settimeout(NODE_CONNECT_S)
        try:
            context.wrap_socket(plain).close()
        except ssl.SSLError as error:
            return "ALERT" in (error.reason or "")  # such as one for a missing certificate
        return True
    return False


def _versions(connection: socket.socket, node: Node) -> Versions:
    try:
        versions = messages.accepted(_received(connection, messages.ACCEPTED_BYTES))
    except HandshakeDamaged as error:
        raise StreamingUnsupported(
            f"{node} does not answer like a storage port of Cassandra: {error}"
        ) from error
    if versions.highest not in messages.MESSAGING_VERSIONS:
        raise StreamingUnsupported(
            f"{node} speaks messaging version {versions.highest}; streaming needs 12 or 13: "
            "Cassandra 4.0, 4.1 or 5.0"
        )
    return versions


def _pending(connection: socket.socket) -> bool:
    """Return whether TLS has decrypted more than was read."""
    return isinstance(connection, ssl.SSLSocket) and bool(connection.pending())


def _received(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionResetError("the node closed the connection")
        data += part
    return bytes(data)


def _granted(contents: Contents, take: Callable[[int], int]) -> Iterator[bytes | memoryview]:
    """Yield the pieces of a file as they may be sent. `take`: see `Allowance`."""
    start = 0
    while start < len(contents):
        until = start + take(min(_REQUEST_BYTES, len(contents) - start))
        while start < until:
            end = min(start + _PIECE_BYTES, until)
            yield contents[start:end]
            start = end


def _crc(contents: Contents) -> int:
    crc = 0
    for piece in _pieces(contents):
        crc = zlib.crc32(piece, crc)
    return crc


def _pieces(contents: Contents) -> Iterator[bytes | memoryview]:
    for start in range(0, len(contents), _PIECE_BYTES):
        yield contents[start : start + _PIECE_BYTES]


def _words(error: Any) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    return str(error.strerror or error)
