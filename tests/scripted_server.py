"""A server of the native protocol v4 on loopback that answers as a script says.

For faults that a real node shows rarely, and never when a test wants them: each EXECUTE is
answered as the script decides. The rest (STARTUP, passwords, PREPARE, OPTIONS) is answered
as by Cassandra, unless a test changes it. One thread a connection; blocking sockets.
"""

from __future__ import annotations

import hashlib
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple

from tests import protocol


class Execute(NamedTuple):
    """A request of a client to write a row, or several in a batch."""

    connection: int  #: 0-based, in the order in which they were opened
    stream: int
    row: int  #: the first bound value, taken for a bigint
    value: bytes = b""  #: the first bound value, whole
    batch: tuple[int, ...] = ()  #: rows of a batch; `row` and `value` are those of the first

    @property
    def rows(self) -> tuple[int, ...]:
        return self.batch or (self.row,)


@dataclass(frozen=True)
class Answer:
    """The reaction to a request."""

    data: bytes = b""  #: sent as it is
    written: bool = False  #: the row is in the table now
    close: bool = False  #: end the connection after `data`


Script = Callable[[Execute], Answer]


def void(request: Execute, **extras: object) -> Answer:
    return Answer(protocol.void(request.stream, **extras), written=True)  # type: ignore[arg-type]


def error(request: Execute, code: int, message: str = "as scripted") -> Answer:
    return Answer(protocol.error(request.stream, code, message))


def first_time(fault: Callable[[Execute], Answer], rows: range | set[int]) -> Script:
    """A script in which each of these rows gets the fault once, the rows of a batch together."""
    left, lock = set(rows), threading.Lock()

    def script(request: Execute) -> Answer:
        with lock:
            if left.isdisjoint(request.rows):
                return void(request)
            left.difference_update(request.rows)
        return fault(request)

    return script


#: No answer at all; the connection stays open.
SILENCE = Answer()
CLOSE = Answer(close=True)


def query_id(statement: str) -> bytes:
    return hashlib.md5(statement.encode(), usedforsecurity=False).digest()


def read_execute(connection: int, stream: int, body: bytes) -> tuple[bytes, Execute]:
    """The statement's id and the request."""
    id_length = int.from_bytes(body[:2], "big")
    statement, body = body[2 : 2 + id_length], body[2 + id_length :]
    # Consistency, flags, count of values, and the length of the first
    value = body[9 : 9 + max(int.from_bytes(body[5:9], "big", signed=True), 0)]
    return statement, Execute(connection, stream, int.from_bytes(body[9:17], "big"), value)


def read_batch(connection: int, stream: int, body: bytes) -> tuple[bytes, Execute]:
    """The same for an unlogged batch of one statement, checked to its last byte."""
    kind, count = struct.unpack_from(">BH", body)
    assert kind == 1 and count
    at, statements, firsts = 3, set(), []
    for _ in range(count):
        prepared, id_length = struct.unpack_from(">BH", body, at)
        assert prepared == 1
        statements.add(body[at + 3 : at + 3 + id_length])
        at += 3 + id_length
        (values_count,) = struct.unpack_from(">H", body, at)
        at += 2
        values = []
        for _ in range(values_count):
            (length,) = struct.unpack_from(">i", body, at)
            at += 4 + max(length, 0)
            values.append(body[at - max(length, 0) : at])
        firsts.append(values[0])
    [statement] = statements
    assert len(body) == at + 3  # consistency, flags
    rows = tuple(int.from_bytes(value[:8], "big") for value in firsts)
    return statement, Execute(connection, stream, rows[0], firsts[0], rows)


class ScriptedServer:
    """The server that the module describes."""

    def __init__(self, script: Script = void) -> None:
        self.script = script
        self.password: str | None = None  #: required if set; the user is "loader"
        self.startup_answer: bytes | None = None  #: instead of READY; b"" is silence
        self.prepare_answers: list[bytes] = []  #: instead of Prepared, as long as there are any
        self.answers_options = True
        #: Called with the number of this OPTIONS; what it returns is sent before the answer.
        self.on_options: Callable[[int], bytes] = lambda number: b""
        self.known: set[bytes] = set()  #: ids of statements that need no PREPARE
        self.written: Counter[int] = Counter()  #: row -> times it was acknowledged
        self.seen: Counter[int] = Counter()  #: row -> times it was requested
        self.unprepared = self.prepares = self.options = self.connections = self.requests = 0
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    def drop_connections(self) -> None:
        """End every connection that is open now."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        # Shutdown, unlike close, wakes the thread that waits on the listener.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_connections()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as Cassandra
                with self._lock:
                    self._open.add(connection)
                    self.connections += 1
                self._start(self._serve, connection, self.connections - 1)

    def _serve(self, connection: socket.socket, number: int) -> None:
        # The client may disconnect at any time: some tests are about that.
        with suppress(OSError), connection, connection.makefile("rb") as stream:
            while len(head := stream.read(9)) == 9:
                version, _, stream_id, opcode, length = struct.unpack(">BBhBi", head)
                assert version == 4
                body = stream.read(length)
                if opcode not in (protocol.EXECUTE, protocol.BATCH):
                    connection.sendall(self._answer(opcode, stream_id, body))
                    continue
                read = read_execute if opcode == protocol.EXECUTE else read_batch
                answer = self._write(*read(number, stream_id, body))
                connection.sendall(answer.data)
                if answer.close:
                    break
        with self._lock:
            self._open.discard(connection)

    def _write(self, statement: bytes, request: Execute) -> Answer:
        if statement not in self.known:
            with self._lock:
                self.unprepared += 1
            return Answer(
                protocol.error(request.stream, 0x2500, "Prepared query with ID not found")
            )
        with self._lock:
            self.seen.update(request.rows)
            self.requests += 1
        answer = self.script(request)
        if answer.written:
            with self._lock:
                self.written.update(request.rows)
        return answer

    def _answer(self, opcode: int, stream: int, body: bytes) -> bytes:
        with self._lock:
            match opcode:
                case protocol.STARTUP:
                    if self.startup_answer is not None:
                        return self.startup_answer
                    if self.password is None:
                        return protocol.reply(protocol.READY, b"", stream)
                    name = protocol.string("org.apache.cassandra.auth.PasswordAuthenticator")
                    return protocol.reply(protocol.AUTHENTICATE, name, stream)
                case protocol.AUTH_RESPONSE:
                    if body[4:] == f"\0loader\0{self.password}".encode():
                        success = protocol.long_bytes(None)
                        return protocol.reply(protocol.AUTH_SUCCESS, success, stream)
                    return protocol.error(stream, 0x0100, "Provided username is incorrect")
                case protocol.OPTIONS:
                    self.options += 1
                    if not self.answers_options:
                        return b""
                    return self.on_options(self.options) + protocol.supported(stream)
                case protocol.PREPARE:
                    self.prepares += 1
                    if self.prepare_answers:
                        answer = self.prepare_answers.pop(0)
                        return answer and answer[:2] + struct.pack(">h", stream) + answer[4:]
                    statement = query_id(body[4:].decode())
                    self.known.add(statement)
                    return protocol.prepared(stream, statement)
        raise AssertionError(f"message {opcode:#04x} from a client")


@contextmanager
def scripted_servers(count: int = 1) -> Iterator[list[ScriptedServer]]:
    """Run servers that acknowledge everything until a test sets another script."""
    servers = [ScriptedServer() for _ in range(count)]
    try:
        yield servers
    finally:
        for server in servers:
            server.stop()
