"""A load through Sidecars: what they are sent, each of their answers, and that nothing is left.

The Sidecar is one of tests that speaks the published interface over HTTP; its node is a function
that does with the files what a node does.
"""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Callable

import pytest

from ringhaul.errors import RinghaulError, Transient
from ringhaul.imports import sidecar as sidecars
from ringhaul.imports.command import NodeNotReached
from ringhaul.imports.sidecar import (
    Sidecar,
    SidecarNotReached,
    SidecarRefused,
    SidecarSession,
)
from ringhaul.streaming.delivery import Delivery
from ringhaul.streaming.owners import Node
from ringhaul.streaming.session import SSTableDamaged
from tests.ports import closed_port
from tests.sidecar import Fault
from tests.unit.imports.rig import ALL_TAKEN, DATA, NODE, NODES, Rig, check, sstable


class Listening:
    """A server whose connections are served one after the other; `with` gives its port."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0))

    def __enter__(self) -> int:
        threading.Thread(target=self._run, daemon=True).start()
        return int(self._listener.getsockname()[1])

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
                with connection:
                    self._serve(connection)
            except OSError:
                if self._listener.fileno() < 0:
                    return

    def __exit__(self, *error: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def test_an_sstable_is_uploaded_imported_and_removed(rig: Rig) -> None:
    rig.server.import_s = 0.3
    granted: list[int] = []

    def take(count: int) -> int:
        granted.append(min(count, 700_000))
        return granted[-1]

    rig.session().send(sstable(), take)

    check(rig)
    # Each byte was paid for
    assert sum(granted) == sstable().bytes_count
    assert len(granted) > 4
    # The checks are those of nodetool, and the import was awaited
    assert rig.options == {
        "verifySSTables": "true", "verifyTokens": "true", "extendedVerify": "false",
    }  # fmt: skip
    assert rig.server.statuses("upload") == ALL_TAKEN
    assert rig.server.statuses("import")[:1] == [202]
    assert rig.server.statuses("import")[-1] == 200
    assert rig.server.statuses("remove") == [404]  # it has removed it itself
    assert {host for _, host, *_ in rig.server.log} == {NODE.address}


def test_each_try_has_another_upload(rig: Rig) -> None:
    rig.server.faults["import"].append(Fault(status=500))
    missed = Delivery(lambda node: rig.session(node)).send(sstable(), NODES, lambda: None)

    assert missed == {}
    for node in NODES:
        check(rig, node)
    uploads = {upload for kind, _, upload, _, _ in rig.server.log if kind == "upload"}
    assert len(uploads) == 4
    assert all(str(uuid.UUID(upload)) == upload for upload in uploads)


def test_names_that_cql_quotes_are_quoted(rig: Rig) -> None:
    rig.session(table="Orders_2").send(sstable())
    assert rig.imported(table="Orders_2")
    with pytest.raises(SidecarRefused, match="400 Invalid characters in table name"):
        rig.session(table="ä/b").send(sstable())
    assert rig.server.uploads() == []


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("upload", Fault(status=429)),
        ("upload", Fault(status=429, retry_after="0")),
        ("upload", Fault(status=503, retry_after="0", file="Statistics.db")),
        ("import", Fault(status=429, retry_after="0")),
        ("import", Fault(forgets=True)),  # the import begins, its answer is lost
        ("import", Fault(cut_after=0)),  # the import does not begin
        ("import", Fault(raw=b"HTTP/1.1 202 Accepted\r\n\r\n")),
    ],
)
def test_one_try_outlives_a_sidecar_that_is_busy_and_lost_answers(
    rig: Rig, kind: str, fault: Fault
) -> None:
    rig.server.faults[kind].append(fault)
    rig.send()
    check(rig)
    assert rig.imports_count() == 1
    assert len({upload for _, _, upload, _, _ in rig.server.log}) == 1


def test_a_sidecar_that_stays_busy_is_given_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sidecars, "BUSY_S", 0.25)
    rig.server.always["upload"] = Fault(status=429, message="limit exceeded", retry_after="0")
    with pytest.raises(SidecarRefused, match=r"did not take nb-1-big-Data\.db: 429 limit exceeded"):
        rig.send()
    assert rig.server.statuses("upload") == [429] * 3


@pytest.mark.parametrize(
    ("kind", "fault", "why"),
    [
        ("upload", Fault(status=400, message="Invalid keyspace"), "Data.db: 400 Invalid keyspace"),
        ("upload", Fault(status=401), "401 out of order; set sidecar.token_file, or sidecar.tls_"),
        ("upload", Fault(status=403), "this user needs STAGED_SSTABLE:UPLOAD, IMPORT and DELETE"),
        (
            "upload",
            Fault(status=408),
            "give its sidecar.request_timeout more time, or make SSTable",
        ),
        ("upload", Fault(status=421), "its cassandra_instances must have this node, with the"),
        ("upload", Fault(status=503), "did not take nb-1-big-Data.db: 503 out of order"),
        (
            "upload",
            Fault(status=507, message="no room"),
            "507 no room; free space on its staging_d",
        ),
        ("upload", Fault(damages=True), "455 Digest mismatch.; bytes changed on the way"),
        ("upload", Fault(cut_after=100_000), "does not answer ("),
        ("upload", Fault(cut_after=9, file="Digest.crc32"), "does not answer ("),
        ("upload", Fault(forgets=True), "does not answer ("),
        ("upload", Fault(raw=b"\x15\x03\x03\x00\x02\x02\x46"), "does it want TLS (sidecar.tls)?"),
        ("upload", Fault(raw=b"HTTP/1.1 200 OK\r\n\r\n"), "did not take nb-1-big-Data.db: 200 OK"),
        (
            "upload",
            Fault(raw=b"HTTP/1.1 500 " + b"x" * 70_000, file="TOC.txt"),
            "its answer is not HTTP",
        ),
        ("upload", Fault(status=500, message="x" * 9000), "500 " + "x" * 300 + "; its log says"),
        ("upload", Fault(status=500, message="a\n\tb"), "500 a b; its log says why"),
        (
            "upload",
            Fault(
                raw=b'HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n{"uploadSizeBytes": 1}',
                file="TOC.txt",
            ),
            "took 1 bytes of nb-1-big-TOC.txt, which has 43",
        ),
        ("import", Fault(status=500, message="Failed"), "did not import: 500 Failed; its log says"),
        ("import", Fault(status=503), "did not import: 503 out of order"),
        ("import", Fault(status=404), "did not import: 404 out of order"),
        (
            "import",
            Fault(raw=b'HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{"success": false}'),
            "did not import: 200 OK",
        ),
    ],
)
def test_what_a_sidecar_refuses_is_passed_on_and_tried_again(
    rig: Rig, kind: str, fault: Fault, why: str
) -> None:
    rig.server.faults[kind].append(fault)
    failed: list[str] = []

    class Watched(SidecarSession):
        def send(self, *given: object) -> None:  # type: ignore[override]
            try:
                super().send(*given)  # type: ignore[arg-type]
            except Transient as error:
                failed.append(str(error))
                raise

    delivery = Delivery(lambda node: Watched(node, rig.access(), "shop", "orders"))
    assert delivery.send(sstable(), [NODE], lambda: None) == {}

    (said,) = failed
    assert said.startswith(f"10.0.0.1 (Sidecar at 127.0.0.1:{rig.server.port}) ")
    assert why in said
    assert len(said) < 600
    assert "\n" not in said
    check(rig)


def test_an_import_that_fails_keeps_nothing_and_names_the_node(rig: Rig) -> None:
    rig.refusal = "Failed to import from directories: [/staging]"
    missed = Delivery(lambda node: rig.session(node)).send(sstable(), [NODE], lambda: None)
    assert "500 Failed to import from directories: [/staging]" in str(missed[NODE])
    assert rig.server.uploads() == []
    assert set(rig.server.statuses("remove")) == {200}


def test_an_import_whose_end_nobody_remembers_is_done_again(rig: Rig) -> None:
    """A Sidecar that was restarted finds the upload gone: it was imported, or it was not."""
    rig.server.faults["import"] += [Fault(forgets=True), Fault(status=404)]
    delivery = Delivery(lambda node: rig.session(node))
    assert delivery.send(sstable(), [NODE], lambda: None) == {}
    assert (rig.imports_count(), delivery.retries) == (2, 1)
    check(rig)


@pytest.mark.parametrize("stays_open", [False, True])
def test_an_answer_is_read_before_the_rest_of_a_file_is_sent(rig: Rig, stays_open: bool) -> None:
    """A Sidecar that has no room says so at once, and takes no more."""
    rig.server.always["upload"] = Fault(status=507, stays_open=stays_open)
    granted: list[int] = []

    def take(count: int) -> int:
        granted.append(min(count, 50_000))
        time.sleep(0.1)
        return granted[-1]

    with pytest.raises(SidecarRefused, match="507"):
        rig.session().send(sstable(), take)
    assert sum(granted) < len(DATA) / 2


def test_a_sidecar_that_hangs_is_given_up(rig: Rig) -> None:
    for kind in ("upload", "import"):
        rig.server.always = {kind: Fault(hangs=True)}
        began_s = time.monotonic()
        with pytest.raises(SidecarNotReached, match=r"does not answer \(no answer\)"):
            rig.send(request_timeout_s=0.3)
        assert time.monotonic() - began_s < 30


def test_a_sidecar_that_answers_byte_by_byte_is_given_up() -> None:
    def serve(connection: socket.socket) -> None:
        for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1000:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)

    with Listening(serve) as port, pytest.raises(SidecarNotReached, match="no answer"):
        access = Sidecar(host="127.0.0.1", port=port, request_timeout_s=0.4)
        SidecarSession(NODE, access, "shop", "orders").probe()


def test_an_import_that_takes_too_long_is_given_up(rig: Rig) -> None:
    rig.server.import_s = 1.0
    with pytest.raises(
        SidecarNotReached, match=r"did not import within 0 s \(sidecar\.import_timeout_s\)"
    ):
        rig.send(import_timeout_s=0.3)


def test_a_unit_that_is_given_up_ends_its_uploads_and_removes_them(rig: Rig) -> None:
    for kind in ("upload", "import"):
        rig.server.always = {kind: Fault(hangs=True)}

        def stop(kind: str = kind) -> None:
            if any(found == kind for found, *_ in rig.server.log):
                raise KeyError

        began_s = time.monotonic()
        with pytest.raises(KeyError):
            Delivery(lambda node: rig.session(node, request_timeout_s=60.0)).send(
                sstable(), NODES[:2], stop
            )
        assert time.monotonic() - began_s < 30
        assert rig.server.uploads() == []
    one = rig.session()
    one.abort()
    with pytest.raises(Transient, match="the import was given up"):
        one.send(sstable())


def test_a_damaged_sstable_is_never_sent(rig: Rig) -> None:
    with pytest.raises(SSTableDamaged, match=r"Data\.db is not what was built"):
        rig.session().send(sstable(DATA[:-1] + b"?"))
    assert rig.server.log == []


def test_a_probe_imports_nothing_and_leaves_nothing(rig: Rig) -> None:
    rig.session().probe()
    assert rig.server.statuses("health") == [200] * 3
    assert rig.server.statuses("import")[-1] == 200
    assert not rig.taken.exists()
    assert rig.server.uploads() == []


@pytest.mark.parametrize(
    ("kind", "fault", "error", "why"),
    [
        ("health", Fault(status=503), NodeNotReached, "the Sidecar is not healthy"),
        ("health", Fault(status=404), SidecarRefused, "does not say whether it is healthy: 404"),
        ("upload", Fault(status=507), SidecarRefused, "did not take manifest.json: 507"),
        ("import", Fault(status=500), SidecarRefused, "did not import: 500"),
    ],
)
def test_a_probe_says_what_is_wrong(
    rig: Rig, kind: str, fault: Fault, error: type[RinghaulError], why: str
) -> None:
    rig.server.faults[kind].append(fault)
    with pytest.raises(error, match=why):
        rig.session().probe()
    assert rig.server.uploads() == []


@pytest.mark.parametrize(
    ("healthy", "why"),
    [(1, "does not reach its Cassandra's port for clients"), (2, "its Cassandra's JMX port")],
)
def test_a_node_that_its_sidecar_does_not_reach_counts_as_down(
    rig: Rig, healthy: int, why: str
) -> None:
    rig.server.faults["health"] += [Fault()] * healthy + [Fault(status=503)]
    with pytest.raises(NodeNotReached, match=why):
        rig.session().probe()


def test_a_port_that_is_closed_is_named() -> None:
    with closed_port() as port:
        refusal = rf"Sidecar at 127\.0\.0\.1:{port}\) does not answer \(Connection ref"
        with pytest.raises(NodeNotReached, match=refusal):
            SidecarSession(NODE, Sidecar(host="127.0.0.1", port=port), "a", "b").probe()


def test_nothing_is_removed_where_nothing_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that is down costs one time-out and not two."""
    tried: list[object] = []

    def connect(*given: object) -> None:
        tried.append(given)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(SidecarNotReached, match="no answer"):
        SidecarSession(NODE, Sidecar(), "shop", "orders").send(sstable())
    assert len(tried) == 1


def test_the_address_of_a_node_has_its_place_in_the_host(rig: Rig) -> None:
    six = Node(address="fe80::1", port=7000)
    rig.server.hosts.add(six.address)
    rig.session(six).probe()
    assert {host for _, host, *_ in rig.server.log} == {"fe80::1"}
    one = Node(address="1", port=7000)
    rig.server.hosts.add(one.address)
    rig.session(one, host="127.0.0.{node}").probe()
    assert rig.server.log[-1][1] == "1"
