"""Faults of servers and connections: each row is written and counted once, or rejected.

The server is scripted, because no real one fails on demand. Each test ends with the same
comparison: rows that the server acknowledged, and rows that the writer counts as written. Silent
and late servers are in test_pipeline_silence.py.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable

import pytest

from ringhaul.dataplane.base import RequestFailed
from ringhaul.dataplane.connection import WireUnsupported
from ringhaul.dataplane.window import LIMIT_FIRST
from ringhaul.errors import ClusterError
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
    CLOSE,
    Answer,
    Execute,
    ScriptedServer,
    error,
    first_time,
    scripted_servers,
    void,
)

OVERLOADED, WRITE_TIMEOUT, UNAVAILABLE = 0x1001, 0x1100, 0x1000
UNAUTHORIZED, INVALID, SYNTAX = 0x2100, 0x2200, 0x2000


def test_without_faults_each_row_is_sent_once(server: ScriptedServer, client: Client) -> None:
    writer = client.load(ROWS)
    check_all_written(writer, server)
    assert set(server.seen.values()) == {1}
    assert client.throttled == ROWS
    assert writer.stats.retries == 0
    assert sum(writer.stats.latencies.values()) == ROWS


def test_acknowledgements_with_warnings_count(server: ScriptedServer, client: Client) -> None:
    server.script = lambda request: void(request, warnings=["large"] if request.row % 3 else None)
    check_all_written(client.load(ROWS), server)


def test_a_forgotten_statement_is_prepared_again_on_that_connection(
    server: ScriptedServer, client: Client
) -> None:
    # Given a server that does not know the statement, and forgets it again later
    server.known.clear()

    def forget(request: Execute) -> Answer:
        server.known.clear()
        return void(request)

    server.script = first_time(forget, {1500})
    # When rows are written
    writer = client.load(ROWS)
    # Then it was prepared twice, over one connection, and every refused row was sent again
    check_all_written(writer, server)
    assert (server.prepares, server.connections) == (2, 1)
    assert server.unprepared == writer.stats.retries > 0
    assert set(server.seen.values()) == {1}


def test_a_statement_that_cannot_be_prepared_now_is_prepared_later(
    server: ScriptedServer, client: Client
) -> None:
    server.known.clear()
    server.prepare_answers = [protocol.error(0, OVERLOADED, "busy")]
    check_all_written(client.load(ROWS), server)
    assert server.prepares == 2


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(protocol.error(0, INVALID, "table orders does not exist"), id="dropped"),
        pytest.param(protocol.error(0, SYNTAX, "eh"), id="syntax"),
    ],
)
def test_a_statement_that_cannot_be_prepared_fails_the_job(
    server: ScriptedServer, client: Client, answer: bytes
) -> None:
    server.known.clear()
    server.prepare_answers = [answer]
    with pytest.raises(ClusterError, match=r"the cluster refuses all writes: (table|eh)"):
        client.load(ROWS)
    assert not server.written


def test_a_statement_that_changed_under_its_name_is_not_used(
    server: ScriptedServer, client: Client
) -> None:
    server.known.clear()
    server.prepare_answers = [protocol.prepared(0, b"x" * 16)] * 100
    with pytest.raises(RequestFailed, match=r"failed 9 times"):
        client.load(ROWS)
    assert not server.written


@pytest.mark.parametrize("code", [OVERLOADED, WRITE_TIMEOUT, UNAVAILABLE])
def test_an_overloaded_server_gets_fewer_requests(
    server: ScriptedServer, client: Client, code: int
) -> None:
    # Given a server that refuses each of the first 1000 rows once
    server.script = first_time(lambda request: error(request, code), range(1000))
    writer = client.load(ROWS)
    # Then each of them was sent once more, and the window shrank
    check_all_written(writer, server)
    assert writer.stats.retries == 1000
    assert {row for row, count in server.seen.items() if count == 2} == set(range(1000))
    assert max(server.seen.values()) == 2
    assert writer.stats.window is not None and writer.stats.window.shrunk >= 1
    assert writer.stats.window.limit_min < LIMIT_FIRST
    assert not client.rejected


def test_a_refused_row_is_rejected_by_its_number(server: ScriptedServer, client: Client) -> None:
    # Given a server that always refuses three rows, among others that fail only at first
    bad = {7, 100, 1999}
    once = first_time(lambda request: error(request, OVERLOADED), range(90, 110))

    def script(request: Execute) -> Answer:
        answer = once(request)
        if answer.written and request.row in bad:
            return error(request, INVALID, f"row {request.row} is bad")
        return answer

    server.script = script
    writer = client.load(ROWS)
    # Then only those three are rejected, and all others are written
    assert sorted(client.rejected) == [(row, f"row {row} is bad") for row in sorted(bad)]
    assert set(server.written) == set(range(ROWS)) - bad
    assert writer.stats.written == ROWS - len(bad)
    assert [server.seen[row] for row in sorted(bad)] == [1, 2, 1]


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize(
    "fault",
    [
        *[
            pytest.param(
                lambda r, cut=cut: Answer(protocol.void(r.stream)[:cut], close=True),
                id=f"void cut at byte {cut}",
            )
            for cut in (0, 1, 8, 9, 12)
        ],
        pytest.param(
            lambda r: Answer(protocol.error(r.stream, INVALID, "row")[:15], close=True),
            id="error cut",
        ),
        pytest.param(
            lambda r: Answer(protocol.reply(protocol.ERROR, b"\0\0\x22\0\0\x09row", r.stream)),
            id="error shorter than it says",
        ),
        pytest.param(
            lambda r: Answer(protocol.reply(protocol.ERROR, b"", r.stream)), id="empty error"
        ),
        pytest.param(
            lambda r: Answer(protocol.void(r.stream).replace(b"\x84", b"\x83", 1)),
            id="another protocol",
        ),
        pytest.param(
            lambda r: Answer(protocol.reply(protocol.RESULT, b"\0\0\0\3\0\1k", r.stream)),
            id="another result",
        ),
        pytest.param(lambda r: Answer(protocol.supported(r.stream)), id="another message"),
        pytest.param(lambda r: Answer(protocol.void(20_000)), id="an unused stream"),
        pytest.param(
            lambda r: Answer(protocol.error(20_000, INVALID, "row")),
            id="an error on an unused stream",
        ),
        pytest.param(
            lambda r: Answer(protocol.void(r.stream) * 2, written=True), id="answered twice"
        ),
        pytest.param(
            lambda r: Answer(
                protocol.void(r.stream) + protocol.error(r.stream, INVALID, "row"), written=True
            ),
            id="answered and refused",
        ),
        pytest.param(lambda r: Answer(b"HTTP/1.1 400 Bad Request\r\n\r\n"), id="HTTP"),
    ],
)
def test_rows_of_a_broken_connection_are_sent_again(
    server: ScriptedServer, client: Client, fault: Callable[[Execute], Answer], batches: bool
) -> None:
    # Given a server whose connection breaks at the 50th row and later once more
    client.batches = batches
    server.script = first_time(fault, {50, 1234})
    writer = client.load(ROWS)
    # Then all rows were written over three connections, each counted once
    check_all_written(writer, server)
    assert server.connections == 3
    assert not client.rejected
    # And only rows without an answer are sent again: at most a window for each break
    assert writer.stats.window is not None
    assert writer.stats.retries <= 2 * writer.stats.window.limit_max


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(protocol.reply(protocol.ERROR, b"\0\0\0\x0a\0\2no", 0, version=0x83), id="v3"),
        pytest.param(protocol.error(0, 0x000A, "unsupported protocol version (4)"), id="not v4"),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", id="ssh"),
    ],
)
def test_a_server_with_another_protocol_gets_no_rows(
    server: ScriptedServer, client: Client, answer: bytes
) -> None:
    server.startup_answer = answer
    with pytest.raises(WireUnsupported, match=r"127\.0\.0\.1"):
        client.load(ROWS)
    assert not server.seen


def test_a_server_that_requires_the_password_gets_it(server: ScriptedServer) -> None:
    server.password = "hush"
    with connected_client([server], password="hush") as client:
        check_all_written(client.load(ROWS), server)


@pytest.mark.parametrize(
    ("password", "words"), [("wrong", "Provided username is incorrect"), (None, "asks for a user")]
)
def test_a_server_that_refuses_the_login_gets_no_rows(
    server: ScriptedServer, password: str | None, words: str
) -> None:
    server.password = "hush"
    with (
        connected_client([server], password=password) as client,
        pytest.raises(RequestFailed, match=words) as caught,
    ):
        client.load(ROWS)
    assert "hush" not in str(caught.value) and "wrong" not in str(caught.value)
    assert not server.seen


def test_a_connection_that_ended_unnoticed_costs_at_most_one_retry(
    server: ScriptedServer, client: Client
) -> None:
    # Given a connection that the server closed, idle for too short a time to be checked
    client.load(ROWS)
    server.drop_connections()
    check_all_written(client.load(ROWS), server)
    assert server.connections == 2


@pytest.mark.parametrize("closes", [True, False])
def test_a_stopped_unit_leaves_no_answers_to_the_next(
    server: ScriptedServer, client: Client, closes: bool
) -> None:
    # Given a unit whose rows the server does not answer, and which is stopped
    go = threading.Event()

    def late(request: Execute) -> Answer:
        go.wait(10)
        return void(request)

    server.script = late

    def stop() -> None:
        raise Stop

    client.on_tick = stop
    writer = client.writer()
    with pytest.raises(Stop):
        writer.write(encoded_rows(0, ROWS))
        writer.flush()
    assert writer.stats.written == 0
    if closes:
        writer.close()
    # When the next unit starts, and the answers arrive after all
    client.on_tick = lambda: None
    after = client.writer()
    go.set()
    after.write(encoded_rows(ROWS, ROWS))
    after.flush()
    # Then it counts only its own rows, over a new connection
    assert after.stats.written == ROWS
    assert set(range(ROWS, 2 * ROWS)) <= set(server.written)
    assert after.stats.retries == 0
    assert server.connections == 2


def test_a_row_is_retried_up_to_the_limit(server: ScriptedServer, client: Client) -> None:
    client.retries_max = 3
    server.script = lambda request: (
        error(request, WRITE_TIMEOUT, "too slow") if request.row == 77 else void(request)
    )
    with pytest.raises(RequestFailed, match=r"failed 4 times, .*write_timeout: too slow"):
        client.load(ROWS)
    assert server.seen[77] == 4
    assert 77 not in server.written


def test_a_server_that_closes_every_connection_uses_up_the_retries(
    server: ScriptedServer, client: Client
) -> None:
    client.retries_max = 3
    server.script = lambda request: CLOSE
    with pytest.raises(RequestFailed, match=r"failed 4 times, .*(closed|reset|[Bb]roken)"):
        client.load(ROWS)
    assert max(server.seen.values()) <= 4


def test_a_unit_waits_for_a_missing_server_and_then_fails(client: Client) -> None:
    with scripted_servers() as [gone]:
        pass
    with connected_client([gone]) as lonely:
        with pytest.raises(RequestFailed, match=r"no replica took rows for 0 s: .*refused"):
            lonely.load(ROWS)
        assert lonely.ticks > 5


@pytest.mark.parametrize(
    ("code", "message"),
    [(UNAUTHORIZED, "no MODIFY permission"), (INVALID, "unconfigured table orders")],
)
def test_an_error_of_every_row_fails_the_job(
    server: ScriptedServer, client: Client, code: int, message: str
) -> None:
    once = first_time(lambda request: error(request, code, message), {1000})
    server.script = once
    with pytest.raises(ClusterError, match=message):
        client.load(ROWS)
    assert not client.rejected


def test_stray_bytes_after_a_break_do_not_reach_the_next_connection(
    server: ScriptedServer, client: Client
) -> None:
    # Given a connection that ends in the middle of an answer, whose rest looks like a valid one
    rest = protocol.void(3)
    half = struct.pack(">BBhBi", 0x84, 0, 0, 8, len(rest) + 4)
    server.script = first_time(lambda request: Answer(half, close=True), {10})
    check_all_written(client.load(ROWS), server)
    assert server.connections == 2
