"""Silent and late servers, and clients that were busy elsewhere.

Rows leave a silent server soon, a slow server keeps its rows, and each row is written and counted
once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from ringhaul.cql.frames import Opcode, frame
from ringhaul.dataplane import choice, liveness, pool
from ringhaul.dataplane.connection import PROBE_STREAM, NodeConnection, wait
from ringhaul.load.write import pipeline
from tests import protocol
from tests.acceptance.command import wait_until
from tests.integration.load.pipeline_client import (
    ROWS,
    Client,
    Stop,
    check_all_written,
    connected_client,
    encoded_rows,
)
from tests.scripted_server import (
    SILENCE,
    Answer,
    Execute,
    ScriptedServer,
    scripted_servers,
    void,
)


def test_a_prepare_that_is_not_answered_times_out(server: ScriptedServer, client: Client) -> None:
    server.known.clear()
    server.prepare_answers = [b""]
    client.request_timeout_s = 0.3
    check_all_written(client.load(ROWS), server)
    assert server.prepares == 2


def test_rows_leave_a_silent_server_for_its_neighbour() -> None:
    with scripted_servers(2) as servers, connected_client(servers, replicas=2) as client:
        # Given two replicas of which one never answers a write
        servers[0].script = lambda request: SILENCE
        client.request_timeout_s = 0.3
        started = time.monotonic()
        writer = client.load(ROWS)
        # Then the other one gets all rows, in little more than the timeouts of the first
        check_all_written(writer, servers[1])
        assert not servers[0].written
        assert writer.stats.retries > 0
        assert time.monotonic() - started < 8


def test_a_server_that_hangs_in_its_handshake_does_not_block_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with scripted_servers(2) as servers, connected_client(servers, replicas=2) as client:
        monkeypatch.setattr(pool, "CONNECT_TIMEOUT_S", 20.0)
        # Given two replicas of which one accepts connections and never answers
        servers[0].startup_answer = b""
        started = time.monotonic()
        writer = client.load(ROWS)
        # Then all rows are written before its handshake times out
        check_all_written(writer, servers[1])
        assert time.monotonic() - started < 15
        assert writer.stats.retries == 0


def test_the_hooks_are_called_while_a_handshake_hangs(
    server: ScriptedServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "NO_REPLICA_S", 20.0)
    server.startup_answer = b""

    def answer_at_last() -> None:
        if client.ticks == 10:
            server.startup_answer = None

    client.on_tick = answer_at_last
    check_all_written(client.load(ROWS), server)
    assert client.ticks > 10


def test_an_idle_connection_is_checked_before_use(
    server: ScriptedServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "HEARTBEAT_IDLE_S", 0.0)
    # Given a used connection, when the next unit starts, then it is checked and used again
    client.load(ROWS)
    check_all_written(client.load(ROWS), server)
    assert (server.options, server.connections) == (1, 1)
    # When it no longer answers, then the next unit opens another one
    monkeypatch.setattr(pool, "HEARTBEAT_TIMEOUT_S", 0.2)
    server.answers_options = False
    check_all_written(client.load(ROWS), server)
    assert (server.options, server.connections) == (2, 2)
    # And also when the server closed it in the meantime
    server.answers_options = True
    server.drop_connections()
    check_all_written(client.load(ROWS), server)
    assert server.connections == 3


def test_rows_of_other_replicas_do_not_wait_for_a_slow_one() -> None:
    with scripted_servers(2) as servers, connected_client(servers) as client:
        # Given rows, half of which belong to a server that is stuck until the other one gets a
        # row of the third block
        go = threading.Event()

        def stuck(request: Execute) -> Answer:
            assert go.wait(20)
            return void(request)

        def third_block(request: Execute) -> Answer:
            if request.row >= 4000:
                go.set()
            return void(request)

        servers[0].script, servers[1].script = stuck, third_block
        # When six blocks are loaded
        writer = client.load(12_000, block=2000)
        # Then no row waited for a timeout
        check_all_written(writer, *servers, rows=12_000)
        assert writer.stats.retries == 0


def test_a_slow_load_uses_all_replicas() -> None:
    with (
        scripted_servers(3) as servers,
        connected_client(servers, replicas=3) as client,
    ):
        # Given open connections, and rows so slow that each is answered before the next is sent
        wait_until(lambda: all(map(client.plane.connection, client.hosts)), "the connections")
        writer = client.writer()
        for row in range(90):
            writer.write(encoded_rows(row, 1))
            writer.flush()
        # Then each replica gets its share
        check_all_written(writer, *servers, rows=90)
        assert [len(server.written) for server in servers] == [30, 30, 30]


def test_only_a_few_blocks_of_rows_wait() -> None:
    with scripted_servers(2) as servers, connected_client(servers) as client:
        # Given two servers of which one accepts rows and never answers
        servers[0].script = lambda request: SILENCE
        handed_over = full_at = 0

        def stop() -> None:
            nonlocal full_at
            if handed_over < pipeline.BLOCKS_KEPT_MAX and client.ticks < 1000:
                full_at = client.ticks
            elif client.ticks > full_at + 20:
                raise Stop

        client.on_tick = stop
        writer = client.writer()
        with pytest.raises(Stop):
            for first in range(0, 100_000, 1000):
                writer.write(encoded_rows(first, 1000))
                handed_over += 1
        # Then no more blocks were read than may be kept
        assert handed_over == pipeline.BLOCKS_KEPT_MAX
        writer.close()


def test_unanswered_requests_are_bounded_in_bytes(server: ScriptedServer, client: Client) -> None:
    # Given a server that answers only after the client has polled for a while, and rows of
    # 100 kB where 1 MiB may be unanswered
    go, most, full_at = threading.Event(), 0, 0

    def later() -> None:
        nonlocal most, full_at
        if go.is_set():
            return
        # The request that the server is handling counts, too
        most = sum(one.window.bytes_count for one in client.plane.open_connections())
        if most <= 900_000 and client.ticks < 1000:
            full_at = client.ticks
        elif client.ticks > full_at + 20:
            go.set()

    def wait(request: Execute) -> Answer:
        assert go.wait(20)
        return void(request)

    server.script, client.on_tick = wait, later
    writer = client.writer()
    writer.write(encoded_rows(0, 100, payload_bytes=100_000))
    writer.flush()
    check_all_written(writer, server, rows=100)
    assert 900_000 < most <= (1 << 20) + 100_100


def test_a_rate_limit_causes_no_timeouts(server: ScriptedServer, client: Client) -> None:
    # Given a rate at which a window of rows takes longer than a timeout
    client.request_timeout_s = 0.7
    client.on_throttle = lambda rows: time.sleep(0.2)
    writer = client.load(640)
    # Then no request times out
    check_all_written(writer, server, rows=640)
    assert writer.stats.retries == 0
    assert server.connections == 1
    assert client.throttled == 640
    # And the server does not count as slow
    assert writer.stats.window is not None and writer.stats.window.shrunk == 0


def test_a_client_that_was_busy_elsewhere_finds_its_answers(
    server: ScriptedServer, client: Client
) -> None:
    # Given a client that does something else for longer than a timeout, while answers arrive
    client.request_timeout_s = 0.3
    naps = iter([1.0])
    client.on_throttle = lambda rows: time.sleep(next(naps, 0) if client.throttled > 1000 else 0)
    writer = client.load(ROWS)
    check_all_written(writer, server)
    assert (writer.stats.retries, server.connections) == (0, 1)


def test_a_slow_reader_gets_complete_large_rows(server: ScriptedServer, client: Client) -> None:
    # Given rows larger than the socket's buffers and a server that reads them slowly
    def slow(request: Execute) -> Answer:
        time.sleep(0.02)
        return void(request)

    server.script = slow
    writer = client.writer()
    writer.write(encoded_rows(0, 12, payload_bytes=3_000_000))
    writer.flush()
    check_all_written(writer, server, rows=12)
    assert set(server.seen.values()) == {1}


@pytest.fixture
def _short_silences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a silent server after 0.2 s, and drop it after 0.7 s if other replicas are alive."""
    monkeypatch.setattr(liveness, "SILENT_S", 0.2)
    monkeypatch.setattr(liveness, "SILENT_PROBED_S", 0.5)


def freeze(server: ScriptedServer) -> None:
    """Make the server silent from its first row on, on every connection, like a stopped process."""

    def script(request: Execute) -> Answer:
        server.startup_answer = b""
        return SILENCE

    server.script, server.answers_options = script, False


def pause(server: ScriptedServer, until_s: float) -> None:
    """Pause the server from its first row until `until_s`; then it continues where it was."""

    def script(request: Execute) -> Answer:
        time.sleep(max(until_s - time.monotonic(), 0.0))
        return void(request)

    server.script = script


@pytest.mark.usefixtures("_short_silences")
def test_rows_leave_a_dead_server_before_the_timeout() -> None:
    with scripted_servers(2) as servers, connected_client(servers, replicas=2) as client:
        # Given two replicas of which one is frozen
        freeze(servers[0])
        client.request_timeout_s = 20.0
        started = time.monotonic()
        writer = client.load(ROWS)
        took_s = time.monotonic() - started
        # Then the other one gets its rows, long before they time out, and each of them once
        check_all_written(writer, servers[1])
        assert 0.7 <= took_s < 10
        assert writer.stats.retries == len(servers[0].seen) > 0
        assert set(servers[0].seen.values()) == set(servers[1].seen.values()) == {1}
        # And that other one, idle by then, was checked before that
        assert servers[0].options == 1 and servers[1].options >= 1


@pytest.mark.usefixtures("_short_silences")
def test_a_slow_but_living_server_keeps_its_rows() -> None:
    with scripted_servers(2) as servers, connected_client(servers, replicas=2) as client:
        # Given two replicas, one of which answers no row until five liveness checks, which it
        # answers at once
        slow, held = servers[0], list[Execute]()

        def hold(request: Execute) -> Answer:
            held.append(request)
            return SILENCE

        def let_go(number: int) -> bytes:
            if number < 5:
                return b""
            slow.script = void
            slow.written.update(request.row for request in held)
            return b"".join(void(request).data for request in held)

        slow.script, slow.on_options = hold, let_go
        started = time.monotonic()
        writer = client.load(ROWS)
        # Then the client waited much longer than for a dead server
        assert time.monotonic() - started > 5 * 0.2
        assert slow.options >= 5
        # And no row was sent twice, and no liveness answer counted as a row
        check_all_written(writer, *servers)
        assert (writer.stats.retries, slow.connections, servers[1].connections) == (0, 1, 1)
        assert set((slow.seen + servers[1].seen).values()) == {1}
        assert sum(writer.stats.latencies.values()) == ROWS


@pytest.mark.usefixtures("_short_silences")
@pytest.mark.parametrize(
    ("count", "replicas"),
    [
        pytest.param(1, 1, id="the only node"),
        pytest.param(2, 1, id="the only replica"),
        pytest.param(2, 2, id="all replicas"),
    ],
)
def test_a_pause_of_all_replicas_uses_up_no_retry(count: int, replicas: int) -> None:
    with (
        scripted_servers(count) as servers,
        connected_client(servers, replicas=replicas) as client,
    ):
        # Given servers that all pause for longer than the limit of a silent one, and continue
        # one after the other
        for number, server in enumerate(servers[:replicas]):
            pause(server, time.monotonic() + 1.5 + 0.2 * number)
        # And a unit without retries
        client.retries_max = 0
        writer = client.load(ROWS)
        # Then each row was sent once, over the existing connections
        check_all_written(writer, *servers)
        assert writer.stats.retries == 0
        assert [server.connections for server in servers] == [1] * count
        assert replicas > 1 or not any(server.options for server in servers)


@pytest.mark.usefixtures("_short_silences")
def test_without_another_replica_the_timeout_decides(
    server: ScriptedServer, client: Client
) -> None:
    # Given a single server that loses a row once, and answers no liveness check
    lost = iter([SILENCE])
    server.script = lambda request: next(lost, None) or void(request)
    server.answers_options = False
    client.request_timeout_s = 1.5
    started = time.monotonic()
    writer = client.load(ROWS)
    # Then that row is sent again after its timeout, and not before
    assert time.monotonic() - started >= 1.5
    check_all_written(writer, server)
    assert (writer.stats.retries, server.connections, server.options) == (1, 2, 0)


@pytest.mark.usefixtures("_short_silences")
def test_an_unanswered_liveness_check_does_not_delay_the_end_of_a_unit() -> None:
    with scripted_servers(3) as servers, connected_client(servers, replicas=3) as client:
        # Given three replicas: one frozen, one that falls silent at its liveness check
        freeze(servers[0])
        servers[1].answers_options = False
        client.request_timeout_s = 20.0
        started = time.monotonic()
        writer = client.load(ROWS)
        # Then the unit ends without that answer
        check_all_written(writer, *servers[1:])
        assert time.monotonic() - started < 10
        assert servers[1].options >= 1
        # And the next unit starts with a connection without a pending check
        writer.close()
        assert all(connection.probed_at_s is None for connection in client.plane.open_connections())
        client.load(ROWS, first=ROWS)
        assert servers[1].connections == 2


@pytest.mark.usefixtures("_short_silences")
@pytest.mark.parametrize("answer", [protocol.void, protocol.supported], ids=["void", "supported"])
def test_an_unsolicited_liveness_answer_counts_as_no_row(
    server: ScriptedServer, client: Client, answer: Callable[[int], bytes]
) -> None:
    stray = iter([answer(PROBE_STREAM)])
    server.script = lambda request: Answer(
        next(stray, b"") + protocol.void(request.stream), written=True
    )
    # Such a connection is closed: rows without an answer go over the next one
    check_all_written(client.load(ROWS), server)
    assert server.connections == 2


def settled_since_s(connection: NodeConnection[str]) -> float:
    """`silent_since_s` once the buffers between here and a server that reads nothing are full."""
    before_s = None
    while (since_s := connection.silent_since_s()) is None or since_s != before_s:
        before_s = since_s
        time.sleep(0.1)
        connection.push()
    return since_s


def test_a_server_that_still_takes_bytes_is_not_silent(
    server: ScriptedServer, client: Client
) -> None:
    # Given a connection with a waiting row, to a server that stopped reading in the middle of much
    go = threading.Event()

    def stuck(number: int) -> bytes:
        assert go.wait(20)
        return b""

    server.on_options = stuck
    connection = client.plane.connection(client.hosts[0])
    assert connection is not None and connection.silent_since_s() is None
    connection.window.sent("row", 0, 1, 100, time.monotonic())
    connection.probe()
    connection.put(memoryview(frame(Opcode.OPTIONS, bytes(60_000_000), 0)))
    since_s = settled_since_s(connection)
    assert connection.wants_write
    # When more is sent to it, then it is as silent as before
    connection.put(memoryview(frame(Opcode.OPTIONS, b"", 0)))
    time.sleep(0.05)
    connection.push()
    assert connection.silent_since_s() == since_s
    # When it reads again, then it is not
    go.set()
    while connection.wants_write:
        _, writable = wait([connection], 10)
        if writable:
            connection.push()
    moved_s = connection.silent_since_s()
    assert moved_s is not None and moved_s >= since_s + 0.05
