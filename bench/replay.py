"""Prepared frames, replayed over plain sockets, to measure the server's own limits.

Native protocol v4 (its specification, section 2): a frame is version, flags, stream id, opcode and
body length, nine bytes, and its body. The client does as little as possible: it counts answers.
"""

from __future__ import annotations

import itertools
import resource
import selectors
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

#: Connections of a replay, and unanswered frames on each.
SOCKETS = 2
WINDOW = 512

VERSION = 4
HEADER = struct.Struct(">BBhBi")
EXECUTE, RESULT = 0x0A, 0x08
_STARTUP, _READY = 0x01, 0x02

#: Gets the data so far, and returns its complete answers and their bytes.
Count = Callable[[bytes], tuple[int, int]]


class Spent:
    """Seconds, and CPU seconds of this process."""

    work_s = 0.0
    cpu_s = 0.0


@contextmanager
def spending() -> Iterator[Spent]:
    """Measure the block."""
    spent = Spent()
    before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    yield spent
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent.work_s = time.perf_counter() - started
    spent.cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def replay(
    host: str, port: int, frames: pa.BinaryArray, count: Count, *, window: int = WINDOW
) -> Spent:
    """Send all frames, keeping `window` unanswered on each socket, until all are answered."""
    cuts = [number * len(frames) // SOCKETS for number in range(SOCKETS + 1)]
    selector = selectors.DefaultSelector()
    with spending() as spent:
        for first, last in itertools.pairwise(cuts):
            share = _Share(connect(host, port), frames.slice(first, last - first), count)
            share.send(window)
            selector.register(share.socket, selectors.EVENT_READ, share)
        left = len(frames)
        while left:
            for key, _ in selector.select():
                left -= key.data.receive()
    return spent


def connect(host: str, port: int) -> socket.socket:
    """Open a connection ready for requests. Raise `RuntimeError` if a password is required."""
    connection = socket.create_connection((host, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    body = struct.pack(">HH11sH5s", 1, 11, b"CQL_VERSION", 5, b"3.0.0")
    connection.sendall(HEADER.pack(VERSION, 0, 0, _STARTUP, len(body)) + body)
    if connection.recv(HEADER.size)[4] != _READY:
        raise RuntimeError("the node is not READY for a client without a password")
    return connection


class _Share:
    """One socket and its frames."""

    def __init__(self, connection: socket.socket, frames: pa.BinaryArray, count: Count) -> None:
        self.socket, self._counted = connection, count
        _, offsets, data = frames.buffers()
        self._offsets = memoryview(offsets).cast("i")[frames.offset :]
        self._data = memoryview(data)
        self._count, self._sent, self._rest = len(frames), 0, b""

    def send(self, count: int) -> None:
        last = min(self._sent + count, self._count)
        if last > self._sent:
            self.socket.sendall(self._data[self._offsets[self._sent] : self._offsets[last]])
            self._sent = last

    def receive(self) -> int:
        data = self._rest + self.socket.recv(1 << 18)
        answers, used = self._counted(data)
        self._rest = data[used:]
        self.send(answers)
        return answers
