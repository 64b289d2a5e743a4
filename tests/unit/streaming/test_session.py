"""What nodes answer, and what is never sent: versions, strangers, damaged SSTables, silence."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from ringhaul.sstables.build import build_sstable
from ringhaul.sstables.columns import Rows
from ringhaul.sstables.layout import Layout
from ringhaul.sstables.version import SSTableVersion
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
from tests.ports import closed_port

TABLE = uuid.UUID(int=7)
LAYOUT = Layout(
    partition_key_class="org.apache.cassandra.db.marshal.BytesType",
    clustering=(),
    columns=(),
    written_s=1_700_000_000,
)


def sstable(data: bytes = b"rows", version: SSTableVersion = SSTableVersion.NB) -> StreamedSSTable:
    digest = str(zlib.crc32(b"rows")).encode()
    files = [("Data.db", data), ("Digest.crc32", digest)]
    return StreamedSSTable(
        table=TABLE,
        version=version,
        header=b"header",
        first_key=b"key",
        components=[(name, memoryview(contents)) for name, contents in files],
        checksums={"Digest.crc32": zlib.crc32(digest)},
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


@pytest.mark.parametrize("version", [11, 14, 256])
def test_other_versions_are_refused(version: int) -> None:
    def serve(connection: socket.socket, number: int) -> None:
        connection.recv(1000)
        connection.sendall(accepted(version))

    with (
        answering(serve) as node,
        pytest.raises(StreamingUnsupported, match=f"speaks messaging version {version}"),
    ):
        StreamSession(node).send(sstable())


def bound_for_files(version: int, sstable: StreamedSSTable) -> bytes:
    """Return what a node of a messaging version is sent on the connection for files."""
    sent, is_over = bytearray(), threading.Event()

    def serve(connection: socket.socket, number: int) -> None:
        connection.recv(1000)
        connection.sendall(accepted(version))
        if number == 0:
            connection.sendall(bytes([Kind.PREPARE_SYNACK]) + bytes(4))
            connection.recv(1000)
            return
        while part := connection.recv(1000):
            sent.extend(part)
        is_over.set()

    with answering(serve) as node, suppress(NodeUnreachable):
        StreamSession(node).send(sstable)
    assert is_over.wait(10)
    return bytes(sent)


@pytest.mark.parametrize(
    ("messaging", "version"),
    [(12, SSTableVersion.NB), (13, SSTableVersion.NB), (13, SSTableVersion.OA)],
)
def test_nodes_get_the_versions_that_they_take(messaging: int, version: SSTableVersion) -> None:
    sent = bound_for_files(messaging, sstable(version=version))
    assert sent[0] == Kind.STREAM
    assert b"\0\2" + version.encode() + b"\0\3big" in sent


def test_a_node_that_does_not_read_a_version_is_not_sent_it() -> None:
    with pytest.raises(StreamRefused, match="takes no SSTables of version oa"):
        bound_for_files(12, sstable(version=SSTableVersion.OA))


def test_both_versions_of_the_protocol_are_offered() -> None:
    _, flags = struct.unpack(">II", messages.hello("127.0.0.1")[:8])
    assert (flags >> 16 & 0xFF, flags >> 24) == (12, 13)
    assert messages.Versions(highest=12, used=12).sstables is SSTableVersion.NB
    assert messages.Versions(highest=13, used=13).sstables is SSTableVersion.OA


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


@contextmanager
def taking(answer_after: bytes = b"") -> Iterator[tuple[Node, bytearray, bytearray]]:
    """A node that takes an SSTable: with what it gets on the control connection, and of files.

    It answers once the former ends with `answer_after`, or after half a minute.
    """
    control, files = bytearray(), bytearray()
    complete = threading.Event()
    wanted = len(b"rows") + len(str(zlib.crc32(b"rows")))

    def serve(connection: socket.socket, number: int) -> None:
        connection.recv(1000)
        connection.sendall(accepted(12))
        if number:
            while part := connection.recv(1000):
                files.extend(part)
                if files.endswith(str(zlib.crc32(b"rows")).encode()) and len(files) > wanted:
                    complete.set()
            return
        control.extend(connection.recv(1000))
        connection.sendall(bytes([Kind.PREPARE_SYNACK]) + bytes(4))
        if not complete.wait(30):
            return
        connection.settimeout(0.01)
        ready_s = time.monotonic() + 30
        while not control.endswith(answer_after) and time.monotonic() < ready_s:
            try:
                control.extend(connection.recv(1000))
            except TimeoutError:
                continue
        connection.settimeout(None)
        connection.sendall(bytes([Kind.RECEIVED]) + bytes(20) + bytes([Kind.COMPLETE]))

    with answering(serve) as node:
        yield node, control, files


def test_bytes_are_paid_for_before_they_are_sent() -> None:
    paid: list[int] = []

    def spend(bytes_max: int) -> int:
        paid.append(min(bytes_max, 3))
        return paid[-1]

    with taking() as (first, _, _), taking() as (second, _, _):
        assert Delivery().send(sstable(), [first, second], lambda: None, spend) == {}
    assert sum(paid) == 2 * sstable().bytes_count
    sizes = [len(contents) for _, contents in sstable().components]
    assert len(paid) == 2 * sum(-(-size // 3) for size in sizes)


def test_a_limit_that_raises_ends_the_sessions() -> None:
    def spend(bytes_max: int) -> int:
        raise KeyError("stop")

    started = time.monotonic()
    with taking() as (node, _, files), pytest.raises(KeyError, match="stop"):
        Delivery().send(sstable(), [node], lambda: None, spend)
    assert time.monotonic() - started < session.STALL_S / 2
    assert b"rows" not in files


def test_a_node_hears_from_us_while_it_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "KEEP_ALIVE_S", 0.05)
    often = bytes([Kind.KEEP_ALIVE] * 3)
    with taking(answer_after=often) as (node, control, _):
        StreamSession(node).send(sstable())
    assert control.endswith(often)


@pytest.mark.parametrize("answers", [True, False], ids=["meanwhile", "never"])
def test_a_node_that_hangs_once_it_has_all_bytes_is_given_up(
    monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    """Unless its answer comes while it is called."""
    monkeypatch.setattr(session, "KEEP_ALIVE_S", 0.2)
    monkeypatch.setattr(session, "STALL_S", 2.0)
    called = threading.Event()

    def serve(connection: socket.socket, number: int) -> None:
        connection.recv(1000)
        if number > 1:  # accepted by the system, and never greeted
            called.set()
            connection.recv(1000)
            return
        connection.sendall(accepted(12))
        if number == 0:
            connection.sendall(bytes([Kind.PREPARE_SYNACK]) + bytes(4))
            if answers and called.wait(30):
                connection.sendall(bytes([Kind.RECEIVED]) + bytes(20) + bytes([Kind.COMPLETE]))
        while connection.recv(1000):
            pass

    started = time.monotonic()
    with answering(serve) as node:
        if answers:
            StreamSession(node).send(sstable())
        else:
            with pytest.raises(NodeUnreachable, match="no answer"):
                StreamSession(node).send(sstable())
    assert called.is_set()
    assert time.monotonic() - started < session.COMPLETE_S / 4


def test_a_node_that_failed_is_tried_once_more_and_others_get_the_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ringhaul.streaming.delivery.PAUSES_S", (0.01, 0.01))
    with closed_port() as port:
        down = Node(address="127.0.0.1", port=port)
        delivery = Delivery()
        missed = delivery.send(sstable(), [down], lambda: None)
        assert list(missed) == [down] and delivery.retries == 2
        assert "Connection refused" in str(missed[down])
        delivery.send(sstable(), [down], lambda: None)
        assert delivery.retries == 2


def test_a_flipped_bit_of_any_file_is_found_before_it_is_sent() -> None:
    dice = random.Random(1)
    rows = Rows(
        keys=pa.array([b"key %d" % n for n in range(500)], pa.binary()),
        clustering=[],
        columns=[],
        times_us=np.full(500, 1_700_000_000_000_000),
        ttls_s=np.zeros(500, np.int64),
    )
    found = StreamedSSTable.of(TABLE, build_sstable(LAYOUT, [rows]))
    files = {name: bytearray(contents[:]) for name, contents in found.components}
    assert len(files) == 7
    for name, data in files.items():
        for at in (0, len(data) - 1, dice.randrange(len(data))):
            data[at] ^= 1 << dice.randrange(8)
            flipped = replace(
                found, components=[(name, memoryview(bytes(data))) for name, data in files.items()]
            )
            with pytest.raises(SSTableDamaged, match=r"is not what was built"):
                flipped.check()
            data[:] = dict(found.components)[name][:]


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
    rows = Rows(
        keys=pa.array([b"a", b"b"], pa.binary()),
        clustering=[],
        columns=[],
        times_us=np.array([1_700_000_000_000_000, 1_700_000_000_000_001]),
        ttls_s=np.array([0, 0]),
    )
    built = build_sstable(LAYOUT, [rows])
    found = StreamedSSTable.of(TABLE, built)
    found.check()
    assert {name for name, _ in found.components} == {*found.checksums, "Data.db"}
    assert "TOC.txt" not in dict(found.components)
    assert found.first_key in (b"a", b"b")
    assert built.header in bytes(dict(found.components)["Statistics.db"][:])
