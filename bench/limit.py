"""The server's own limit: EXECUTE frames encoded beforehand and replayed, answers only counted.

The denominator of every load figure. `python -m bench.limit HOST PORT KEYSPACE.TABLE FILE` prints
one JSON line. Native protocol v4 (its specification, sections 2 and 4): a frame is version, flags,
stream id, opcode and body length; a VOID result is 13 bytes.
"""

from __future__ import annotations

import itertools
import json
import resource
import selectors
import socket
import struct
import sys
import time
from pathlib import Path

import pyarrow as pa

from bench.frames import frames_of
from ringhaul.cluster.connect import ClusterConfig, close_session, open_session
from ringhaul.cluster.schema import find_table

SOCKETS = 2
WINDOW = 512
VOID = 13


def main() -> None:
    host, port, name, path = sys.argv[1:5]
    keyspace, _, table = name.partition(".")
    session = open_session(ClusterConfig(contact_points=(host,), port=int(port)))
    schema = find_table(session.cluster.metadata, keyspace, table)
    frames = frames_of(session, schema, Path(path), streams=WINDOW)
    close_session(session)
    cuts = [number * len(frames) // SOCKETS for number in range(SOCKETS + 1)]
    shares = [frames.slice(first, last - first) for first, last in itertools.pairwise(cuts)]
    before = resource.getrusage(resource.RUSAGE_SELF)
    started = time.perf_counter()
    _replay(host, int(port), shares)
    load_s = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"rows": len(frames), "load_s": load_s, "cpu_s": cpu_s}))


def _replay(host: str, port: int, shares: list[pa.BinaryArray]) -> None:
    """Keep WINDOW frames unanswered on each socket until all are answered."""
    selector = selectors.DefaultSelector()
    for share in shares:
        state = _Share(_connect(host, port), share)
        state.send(WINDOW)
        selector.register(state.socket, selectors.EVENT_READ, state)
    left = sum(len(share) for share in shares)
    while left:
        for key, _ in selector.select():
            left -= key.data.receive()


class _Share:
    """One socket and the frames it sends."""

    def __init__(self, connection: socket.socket, frames: pa.BinaryArray) -> None:
        self.socket = connection
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
        answers = len(data) // VOID
        whole = data[: answers * VOID]
        if whole[4::VOID] != b"\x08" * answers or whole[8::VOID] != b"\x04" * answers:
            raise RuntimeError(f"an answer that is no VOID result: {whole[:200]!r}")
        self._rest = data[answers * VOID :]
        self.send(answers)
        return answers


def _connect(host: str, port: int) -> socket.socket:
    connection = socket.create_connection((host, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    body = struct.pack(">HH11sH5s", 1, 11, b"CQL_VERSION", 5, b"3.0.0")
    connection.sendall(struct.pack(">BBhBi", 4, 0, 0, 1, len(body)) + body)
    if connection.recv(9)[4] != 2:
        raise RuntimeError("the node is not READY for a client without a password")
    return connection


if __name__ == "__main__":
    main()
