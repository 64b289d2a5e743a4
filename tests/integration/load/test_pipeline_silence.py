"""Servers that say nothing, or say it late, and clients that were away.

What must not wait does not, what only takes its time is left alone, and each row is written, once
by the counts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from ringhaul.cql.frames import Opcode, frame
from ringhaul.dataplane import dispatcher, liveness, pool
from ringhaul.dataplane.connection import PROBE_STREAM, NodeConnection, wait
from ringhaul.load.write import pipeline
from tests import protocol
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


def test_a_server_that_falls_silent_is_left_for_its_neighbour() -> None:
    with scripted_servers(2) as servers, connected_client(servers, replicas=2) as client:
        # Given two replicas of which one never answers a write
        servers[0].script = lambda request: SILENCE
        client.request_timeout_s = 0.3
        started = time.monotonic()
        writer = client.load(ROWS)
        # Then the other takes all rows, in little more than the time-outs of the first
        check_all_written(writer, servers[1])
        assert not servers[0].written
        assert writer.stats.retries > 0
        assert time.monotonic() - started < 8


def test_a_server_that_hangs_in_its_handshake_holds_nobody_up() -> None:
    with scripted_servers(2) as servers, connected_client(servers, replicas=2) as client:
        # Given two replicas of which one takes connections and then says nothing
        servers[0].startup_answer = b""
        started = time.monotonic()
        writer = client.load(ROWS)
        # Then all rows are written before its handshake times out
        check_all_written(writer, servers[1])
        assert time.monotonic() - started < 0.9
        assert writer.stats.retries == 0


def test_the_hooks_are_called_while_a_handshake_hangs(
    server: ScriptedServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "NO_REPLICA_S", 20.0)
    server.startup_answer = b""

    def answer_at_last() -> None:
        if client.ticks == 10:
            server.startup_answer = None

    client.on_tick = answer_at_last
    check_all_written(client.load(ROWS), server)
    assert client.ticks > 10


def test_an_idle_connection_is_asked_whether_it_lives(
    server: ScriptedServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "HEARTBEAT_IDLE_S", 0.0)
    # Given a connection that was used, When the next unit comes, Then it is asked and used again
    client.load(ROWS)
    check_all_written(client.load(ROWS), server)
    assert (server.options, server.connections) == (1, 1)
    # When it does not answer any more, Then the next unit opens another
    monkeypatch.setattr(pool, "HEARTBEAT_TIMEOUT_S", 0.2)
    server.answers_options = False
    check_all_written(client.load(ROWS), server)
    assert (server.options, server.connections) == (2, 2)
    # And also when the server ended it in the meantime
    server.answers_options = True
    server.drop_connections()
    check_all_written(client.load(ROWS), server)
    assert server.connections == 3


def test_rows_of_other_replicas_do_not_wait_for_a_slow_one() -> None:
    with scripted_servers(2) as servers, connected_client(servers) as client:
        # Given rows that belong half to a server that is stuck until the other one has seen a row
        # of the third block
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
        # Then nobody waited for a time-out
        check_all_written(writer, *servers, rows=12_000)
        assert writer.stats.retries == 0


def test_a_load_that_fills_no_window_goes_to_all_replicas() -> None:
    with (
        scripted_servers(3) as servers,
        connected_client(servers, replicas=3) as client,
    ):
        # Given rows that come so slowly that each is answered before the next is sent
        writer = client.writer()
        for row in range(90):
            writer.write(encoded_rows(row, 1))
            writer.flush()
        # Then each replica gets its share
        check_all_written(writer, *servers, rows=90)
        assert [len(server.written) for server in servers] == [30, 30, 30]


def test_rows_that_wait_are_those_of_a_few_blocks() -> None:
    with scripted_servers(2) as servers, connected_client(servers) as client:
        # Given two servers of which one takes rows and never answers
        servers[0].script = lambda request: SILENCE
        handed_over = 0

        def stop() -> None:
            if client.ticks > 20:
                raise Stop

        client.on_tick = stop
        writer = client.writer()
        with pytest.raises(Stop):
            for first in range(0, 100_000, 1000):
                writer.write(encoded_rows(first, 1000))
                handed_over += 1
        # Then no more blocks were asked for than may be kept
        assert handed_over == pipeline.BLOCKS_KEPT_MAX
        writer.close()


def test_unanswered_requests_are_bounded_in_bytes(server: ScriptedServer, client: Client) -> None:
    # Given a server that answers nothing until the client has looked around for a while, and rows
    # of 100 kB where 1 MiB may be unanswered
    go, most = threading.Event(), 0

    def later() -> None:
        nonlocal most
        if not go.is_set() and client.ticks > 20:
            # The one that the server holds in its hand was asked for, too
            most = client.plane.open_wires()[0].window.bytes_count
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


def test_a_rate_limit_makes_no_time_outs(server: ScriptedServer, client: Client) -> None:
    # Given leave to send that comes so slowly that a window of rows takes longer than a time-out
    client.request_timeout_s = 0.4
    client.on_throttle = lambda rows: time.sleep(0.2)
    writer = client.load(640)
    # Then no answer is missed
    check_all_written(writer, server, rows=640)
    assert writer.stats.retries == 0
    assert server.connections == 1
    assert client.throttled == 640
    # And the server is not taken for slow
    assert writer.stats.window is not None and writer.stats.window.shrunk == 0


def test_a_client_that_was_away_finds_its_answers(server: ScriptedServer, client: Client) -> None:
    # Given a client that does something else for longer than a time-out, while answers come
    client.request_timeout_s = 0.3
    naps = iter([1.0])
    client.on_throttle = lambda rows: time.sleep(next(naps, 0) if client.throttled > 1000 else 0)
    writer = client.load(ROWS)
    check_all_written(writer, server)
    assert (writer.stats.retries, server.connections) == (0, 1)


def test_a_slow_reader_gets_large_rows_whole(server: ScriptedServer, client: Client) -> None:
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
    """A silent server is asked after 0.2 s, and taken for dead after 0.7 s if others are alive."""
    monkeypatch.setattr(liveness, "SILENT_S", 0.2)
    monkeypatch.setattr(liveness, "SILENT_ASKED_S", 0.5)


def freeze(server: ScriptedServer) -> None:
    """From its first row on it says nothing more, on any connection, as a stopped process."""

    def script(request: Execute) -> Answer:
        server.startup_answer = b""
        return SILENCE

    server.script, server.answers_options = script, False


def pause(server: ScriptedServer, until_s: float) -> None:
    """From its first row on it does nothing, and then goes on where it was."""

    def script(request: Execute) -> Answer:
        time.sleep(max(until_s - time.monotonic(), 0.0))
        return void(request)

    server.script = script


@pytest.mark.usefixtures("_short_silences")
def test_a_server_without_a_sign_of_life_is_left_before_the_time_out() -> None:
    with scripted_servers(2) as servers, connected_client(servers, replicas=2) as client:
        # Given two replicas of which one is frozen
        freeze(servers[0])
        client.request_timeout_s = 20.0
        started = time.monotonic()
        writer = client.load(ROWS)
        took_s = time.monotonic() - started
        # Then the other takes its rows, long before they time out, and each of them once
        check_all_written(writer, servers[1])
        assert 0.7 <= took_s < 10
        assert writer.stats.retries == len(servers[0].seen) > 0
        assert set(servers[0].seen.values()) == set(servers[1].seen.values()) == {1}
        # And that other one, idle by then, was asked whether it lives before that
        assert servers[0].options == 1 and servers[1].options >= 1


@pytest.mark.usefixtures("_short_silences")
def test_a_server_that_only_takes_its_time_is_left_alone() -> None:
    with scripted_servers(2) as servers, connected_client(servers, replicas=2) as client:
        # Given two replicas of which one answers no row until it was asked five times whether it
        # lives, which it says at once
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
        # Then it was waited for, for much longer than one without a sign of life
        assert time.monotonic() - started > 5 * 0.2
        assert slow.options >= 5
        # And no row was sent twice, and no sign of life counted as a row
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
def test_a_pause_without_anyone_to_stand_in_costs_no_try(count: int, replicas: int) -> None:
    with (
        scripted_servers(count) as servers,
        connected_client(servers, replicas=replicas) as client,
    ):
        # Given servers that pause for longer than a silent one is waited for, and no others; they
        # go on one after the other
        for number, server in enumerate(servers[:replicas]):
            pause(server, time.monotonic() + 1.5 + 0.2 * number)
        # And a unit that may try nothing twice
        client.retries_max = 0
        writer = client.load(ROWS)
        # Then each row was sent once, over the connections that there were
        check_all_written(writer, *servers)
        assert writer.stats.retries == 0
        assert [server.connections for server in servers] == [1] * count
        assert replicas > 1 or not any(server.options for server in servers)


@pytest.mark.usefixtures("_short_silences")
def test_without_anyone_to_stand_in_the_time_out_decides(
    server: ScriptedServer, client: Client
) -> None:
    # Given a single server that loses a row once, and does not say that it lives
    lost = iter([SILENCE])
    server.script = lambda request: next(lost, None) or void(request)
    server.answers_options = False
    client.request_timeout_s = 1.5
    started = time.monotonic()
    writer = client.load(ROWS)
    # Then that row is sent again when its time is up, and not before
    assert time.monotonic() - started >= 1.5
    check_all_written(writer, server)
    assert (writer.stats.retries, server.connections, server.options) == (1, 2, 0)


@pytest.mark.usefixtures("_short_silences")
def test_a_question_left_unanswered_keeps_no_unit_from_its_end() -> None:
    with scripted_servers(3) as servers, connected_client(servers, replicas=3) as client:
        # Given three replicas: one frozen, one that is never heard again once it was asked
        freeze(servers[0])
        servers[1].answers_options = False
        client.request_timeout_s = 20.0
        started = time.monotonic()
        writer = client.load(ROWS)
        # Then the unit ends without the answer
        check_all_written(writer, *servers[1:])
        assert time.monotonic() - started < 10
        assert servers[1].options >= 1
        # And the next one begins with a connection to which none comes any more
        writer.close()
        assert all(wire.probed_at_s is None for wire in client.plane.open_wires())
        client.load(ROWS, first=ROWS)
        assert servers[1].connections == 2


@pytest.mark.usefixtures("_short_silences")
@pytest.mark.parametrize("answer", [protocol.void, protocol.supported], ids=["void", "supported"])
def test_an_answer_to_a_question_that_was_not_asked_is_no_row(
    server: ScriptedServer, client: Client, answer: Callable[[int], bytes]
) -> None:
    stray = iter([answer(PROBE_STREAM)])
    server.script = lambda request: Answer(
        next(stray, b"") + protocol.void(request.stream), written=True
    )
    # Such a connection is of no use: rows without an answer go over the next one
    check_all_written(client.load(ROWS), server)
    assert server.connections == 2


def settled_since_s(wire: NodeConnection[str]) -> float:
    """`silent_since_s` once the buffers between here and a server that reads nothing are full."""
    before_s = None
    while (since_s := wire.silent_since_s()) is None or since_s != before_s:
        before_s = since_s
        time.sleep(0.1)
        wire.push()
    return since_s


def test_a_server_that_still_takes_bytes_is_not_silent(
    server: ScriptedServer, client: Client
) -> None:
    # Given a wire on which a row waits, to a server that stopped reading in the middle of much
    go = threading.Event()

    def stuck(number: int) -> bytes:
        assert go.wait(20)
        return b""

    server.on_options = stuck
    wire = client.plane.wire(client.hosts[0])
    assert wire is not None and wire.silent_since_s() is None
    wire.window.sent("row", 0, 1, 100, time.monotonic())
    wire.probe()
    wire.put(memoryview(frame(Opcode.OPTIONS, bytes(60_000_000), 0)))
    since_s = settled_since_s(wire)
    assert wire.wants_write
    # When more is sent to it, Then it is as silent as before
    wire.put(memoryview(frame(Opcode.OPTIONS, b"", 0)))
    time.sleep(0.05)
    wire.push()
    assert wire.silent_since_s() == since_s
    # When it reads on, Then it is not
    go.set()
    while wire.wants_write:
        _, writable = wait([wire], 10)
        if writable:
            wire.push()
    moved_s = wire.silent_since_s()
    assert moved_s is not None and moved_s >= since_s + 0.05
