"""What nodes answer, and what is never sent: versions, strangers, damaged SSTables, silence."""

from __future__ import annotations

import socket
import struct
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest

from ringhaul.sstables.build import build_sstable
from ringhaul.sstables.columns import Rows
from ringhaul.sstables.layout import Layout
from ringhaul.streaming import messages, session
from ringhaul.streaming.delivery import Delivery
from ringhaul.streaming.messages import HandshakeDamaged, Kind
from ringhaul.streaming.owners import Node
from ringhaul.streaming.session import (
    NodeUnreachable,
    SSTableDamaged,
    StreamedSSTable,
    StreamingUnsupported,
    StreamRefused,
    StreamSession,
)

TABLE = uuid.UUID(int=7)


def sstable(data: bytes = b"rows") -> StreamedSSTable:
    digest = str(zlib.crc32(b"rows")).encode()
    files = [("Data.db", data), ("Digest.crc32", digest)]
    return StreamedSSTable(
        table=TABLE,
        header=b"header",
        first_key=b"key",
        components=[(name, memoryview(contents)) for name, contents in files],
    )


def accepted(version: int) -> bytes:
    versions = struct.pack(">ii", version, 12)
    return versions + struct.pack(">I", zlib.crc32(versions, zlib.crc32(b"\xfa\x2d\x55\xca")))


@contextmanager
def answering(serve: Callable[[socket.socket, int], None]) -> Iterator[Node]:
    """A server whose connections are served in turn: (connection, its number from 0)."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            number = 0
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(
                    target=_served, args=(serve, connection, number), daemon=True
                ).start()
                number += 1

        threading.Thread(target=run, daemon=True).start()
        yield Node(address="127.0.0.1", port=listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)


def _served(serve: Callable[[socket.socket, int], None], connection: socket.socket, n: int) -> None:
    with connection:
        try:
            serve(connection, n)
            # Closed with unread bytes, a socket resets the connection, and drops its own answer.
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
        except OSError:
            return


def test_a_damaged_sstable_is_never_sent() -> None:
    connections = []
    with (
        answering(lambda connection, n: connections.append(n)) as node,
        pytest.raises(SSTableDamaged, match=r"Data\.db is not what was built"),
    ):
        StreamSession(node).send(sstable(b"rowz"))
    assert connections == []


@pytest.mark.parametrize("version", [11, 13, 14, 256])
def test_other_versions_are_refused(version: int) -> None:
    def serve(connection: socket.socket, number: int) -> None:
        connection.recv(1000)
        connection.sendall(accepted(version))

    with (
        answering(serve) as node,
        pytest.raises(StreamingUnsupported, match=f"speaks messaging version {version}"),
    ):
        StreamSession(node).send(sstable())


def test_strangers_are_refused() -> None:
    def serve(connection: socket.socket, number: int) -> None:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 400")

    with (
        answering(serve) as node,
        pytest.raises(StreamingUnsupported, match="does not answer like a storage port"),
    ):
        StreamSession(node).send(sstable())


@pytest.mark.parametrize(
    ("answer", "error", "why"),
    [
        (bytes([Kind.SESSION_FAILED]), StreamRefused, "discarded an SSTable"),
        (bytes([99]), StreamRefused, "unknown message, 99"),
        (bytes([Kind.COMPLETE]), StreamRefused, "answers COMPLETE instead of RECEIVED"),
        (
            bytes([Kind.RECEIVED]) + bytes(10),
            NodeUnreachable,
            r"127\.0\.0\.1:\d+: .*connection|reset",
        ),
        (b"", NodeUnreachable, r"127\.0\.0\.1:\d+: .*connection|reset"),
    ],
)
def test_a_node_that_does_not_keep_the_rows(
    answer: bytes, error: type[Exception], why: str
) -> None:
    def serve(connection: socket.socket, number: int) -> None:
        connection.recv(1000)
        connection.sendall(accepted(12))
        if number == 0:
            connection.sendall(bytes([Kind.KEEP_ALIVE, Kind.PREPARE_SYNACK]) + bytes(4))
            connection.sendall(answer)
            return
        while connection.recv(1000):
            pass

    with answering(serve) as node, pytest.raises(error, match=why):
        StreamSession(node).send(sstable())


def test_a_connection_for_files_that_ends_unnoticed_by_the_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "LAST_WORDS_S", 0.1)

    def serve(connection: socket.socket, number: int) -> None:
        connection.recv(1000)
        connection.sendall(accepted(12))
        if number == 0:  # stays open, and says nothing more
            connection.sendall(bytes([Kind.PREPARE_SYNACK]) + bytes(4))
            while connection.recv(1000):
                pass

    with answering(serve) as node, pytest.raises(NodeUnreachable):
        StreamSession(node).send(sstable())


def test_a_tick_that_raises_ends_the_sessions() -> None:
    held = threading.Event()

    def serve(connection: socket.socket, number: int) -> None:
        held.set()
        connection.recv(1000)
        assert connection.recv(1) == b"", "the client ends the connection"

    def tick() -> None:
        if held.is_set():
            raise KeyError("stop")

    started = time.monotonic()
    with answering(serve) as node, pytest.raises(KeyError, match="stop"):
        Delivery().send(sstable(), [node], tick)
    assert time.monotonic() - started < session.STALL_S / 2, "the node's answer was waited for"


def test_a_node_that_failed_is_tried_once_more_and_others_get_the_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ringhaul.streaming.delivery.PAUSES_S", (0.01, 0.01))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        down = Node(address="127.0.0.1", port=taken.getsockname()[1])
    delivery = Delivery()
    missed = delivery.send(sstable(), [down], lambda: None)
    assert list(missed) == [down] and delivery.retries == 2
    assert "Connection refused" in str(missed[down])
    delivery.send(sstable(), [down], lambda: None)
    assert delivery.retries == 2


def test_handshakes_are_checked() -> None:
    assert messages.accepted(accepted(12)).highest == 12
    for damaged in (b"", bytes(12), accepted(12)[:-1] + b"x"):
        with pytest.raises(HandshakeDamaged):
            messages.accepted(damaged)


def test_addresses_of_both_families_fit_a_handshake() -> None:
    four, six = messages.hello("127.0.0.1"), messages.hello("::1")
    assert (len(four), len(six)) == (8 + 7 + 4, 8 + 19 + 4)
    assert four[:4] == six[:4] == bytes.fromhex("ca552dfa")


def test_sstables_are_sent_without_their_list_of_components() -> None:
    layout = Layout(
        partition_key_class="org.apache.cassandra.db.marshal.BytesType",
        clustering=(),
        columns=(),
        written_s=1_700_000_000,
    )
    rows = Rows(
        keys=pa.array([b"a", b"b"], pa.binary()),
        clustering=[],
        columns=[],
        times_us=np.array([1_700_000_000_000_000, 1_700_000_000_000_001]),
        ttls_s=np.array([0, 0]),
    )
    built = build_sstable(layout, [rows])
    found = StreamedSSTable.of(TABLE, built)
    found.check()
    assert "TOC.txt" not in dict(found.components)
    assert found.first_key in (b"a", b"b")
    assert built.header in bytes(dict(found.components)["Statistics.db"][:])
