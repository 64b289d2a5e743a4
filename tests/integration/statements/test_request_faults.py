"""Faults of servers and connections: each row is answered once, rejected or in doubt.

The server is scripted, because no real one fails on demand. It must never get a statement twice
that may not be repeated.
"""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from cassandra.cqltypes import LongType
from cassandra.protocol import ColumnMetadata
from cassandra.query import PreparedStatement

from ringhaul.cluster.prepared import Marked
from ringhaul.cql.types import CqlType
from ringhaul.dataplane import liveness
from ringhaul.dataplane.base import RequestFailed
from ringhaul.errors import ClusterError
from ringhaul.statements.exec import APPLIED, Statement
from ringhaul.statements.idempotence import effect_of
from tests import protocol
from tests.integration.load.pipeline_client import KEYSPACE, connected_client
from tests.integration.statements.client import Client
from tests.scripted_server import (
    CLOSE,
    SILENCE,
    Answer,
    Execute,
    ScriptedServer,
    error,
    first_time,
    query_id,
    scripted_servers,
    void,
)

ROWS = 4000
IDS = [str(i) for i in range(ROWS)]
OVERLOADED, WRITE_TIMEOUT, UNAVAILABLE = 0x1001, 0x1100, 0x1000
READ_TIMEOUT, READ_FAILURE, INVALID, SYNTAX = 0x1200, 0x1300, 0x2200, 0x2000

BIGINT = CqlType("bigint")
MARKER = ColumnMetadata(KEYSPACE, "orders", "id", LongType)


def statement_of(text: str, columns: int = 0) -> Statement:
    """Return a statement as `Statement.prepare` makes it. All have the one marker `id`."""
    prepared = PreparedStatement([MARKER], query_id(text), [0], text, None, 4, [], None)
    result = Marked(tuple("ab"[:columns]), (BIGINT,) * columns)
    return Statement(prepared, effect_of(text), Marked(("id",), (BIGINT,)), result, KEYSPACE)


COUNT = statement_of("UPDATE shop.orders SET n = n + 1 WHERE id = ?")
INSERT = statement_of("INSERT INTO shop.orders (id) VALUES (?)")
SELECT = statement_of("SELECT a, b FROM shop.orders WHERE id = ?", 2)


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[Client]:
    server.known |= {one.prepared.query_id for one in (COUNT, INSERT, SELECT)}
    with connected_client([server]) as connected:
        yield Client(connected.session, connected.plane)


def answer_rows(
    request: Execute, *rows: tuple[int, int | None], state: bytes | None = None, **extras: Any
) -> Answer:
    body = struct.pack(">iii", 2, 4 if state is None else 6, 2)
    if state is not None:
        body += protocol.long_bytes(state)
    body += struct.pack(">i", len(rows))
    for row in rows:
        for cell in row:
            body += protocol.long_bytes(None if cell is None else struct.pack(">q", cell))
    data = protocol.reply(protocol.RESULT, body, request.stream)
    if "warning" in extras:
        body = struct.pack(">H", 1) + protocol.string(extras["warning"]) + body
        data = protocol.reply(protocol.RESULT, body, request.stream, flags=protocol.WARNING)
    return Answer(data, written=True)


def one_row(request: Execute) -> Answer:
    return answer_rows(request, (request.row, None))


def check_each_reported_once(client: Client, *servers: ScriptedServer, doubts: bool = True) -> None:
    """Assert that answered, rejected and doubtful rows are all rows, and none was sent twice."""
    assert client.stats.answered + len(client.rejected) + len(client.in_doubt) == ROWS
    assert (client.stats.rejected, client.stats.in_doubt) == (
        len(client.rejected), len(client.in_doubt),
    )  # fmt: skip
    assert not client.rejected.keys() & client.in_doubt.keys()
    assert bool(client.in_doubt) is doubts
    written: set[int] = set()
    for server in servers:
        assert not server.seen or max(server.seen.values()) == 1
        written |= set(server.written)
    # Rows neither rejected nor in doubt were written; of the others, only doubtful ones may be
    sure = set(range(ROWS)) - client.rejected.keys() - client.in_doubt.keys()
    assert sure <= written <= sure | client.in_doubt.keys()


@pytest.mark.parametrize("before", [True, False])
def test_non_idempotent_requests_are_in_doubt_when_a_connection_ends(
    server: ScriptedServer, client: Client, before: bool
) -> None:
    # Given a server that closes the connection at some rows, after or before it has written them
    server.script = first_time(
        lambda request: Answer(written=not before, close=True), {0, 300, 1500}
    )
    # When counters are counted
    client.exec(COUNT, IDS)
    # Then requests in flight are in doubt, and all others are counted once
    check_each_reported_once(client, server)
    assert client.in_doubt.keys() >= {0, 300, 1500}
    assert server.connections == 4
    assert len(client.in_doubt) < 3 * 1024
    assert client.stats.retries == 0


def test_idempotent_requests_are_sent_again(server: ScriptedServer, client: Client) -> None:
    server.script = first_time(lambda request: CLOSE, {0, 300, 1500})
    client.exec(INSERT, IDS)
    assert client.stats.answered == ROWS and set(server.written) == set(range(ROWS))
    assert not client.in_doubt and not client.rejected
    assert client.stats.retries > 0


@pytest.mark.parametrize(
    ("code", "doubt"),
    [
        (WRITE_TIMEOUT, True),
        (OVERLOADED, True),
        (0x0000, True),
        (UNAVAILABLE, False),
        (0x1002, False),
    ],
)
def test_errors_with_an_unknown_outcome(
    server: ScriptedServer, client: Client, code: int, doubt: bool
) -> None:
    server.script = first_time(lambda request: error(request, code), {5, 999})
    client.exec(COUNT, IDS)
    assert set(client.in_doubt) == ({5, 999} if doubt else set())
    assert client.stats.answered == ROWS - len(client.in_doubt)
    assert server.seen[5] == server.seen[999] == (1 if doubt else 2)
    assert client.stats.retries == (0 if doubt else 2)


def test_a_refused_statement_over_several_partitions_is_in_doubt(
    server: ScriptedServer, client: Client
) -> None:
    statement = statement_of("UPDATE shop.orders SET n = n + 1 WHERE id IN (0, ?)")
    server.known.add(statement.prepared.query_id)
    server.script = first_time(lambda request: error(request, UNAVAILABLE), {5})
    client.exec(statement, IDS)
    assert set(client.in_doubt) == {5} and server.seen[5] == 1


def test_requests_to_a_silent_server_are_in_doubt(server: ScriptedServer, client: Client) -> None:
    client.request_timeout_s = 0.3
    server.script = first_time(lambda request: SILENCE, {10})
    client.exec(COUNT, IDS)
    check_each_reported_once(client, server)
    assert "no answer for 0.3 s" in client.in_doubt[10]


@pytest.mark.parametrize("statement", [COUNT, INSERT, SELECT], ids=["count", "insert", "select"])
def test_only_idempotent_requests_leave_a_silent_server_early(
    statement: Statement, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given two replicas, one of which does not answer liveness checks
    monkeypatch.setattr(liveness, "SILENT_S", 0.1)
    monkeypatch.setattr(liveness, "SILENT_PROBED_S", 0.3)
    with scripted_servers(2) as servers, connected_client(servers, replicas=2) as connected:
        for server in servers:
            server.known.add(statement.prepared.query_id)
            server.script = one_row if statement is SELECT else void
        servers[0].script = lambda request: SILENCE
        servers[0].answers_options = False
        repeatable = statement is not COUNT
        client = Client(connected.session, connected.plane)
        client.request_timeout_s = 10.0 if repeatable else 1.5
        # When it is given requests
        started = time.monotonic()
        client.exec(statement, IDS[:100])
        took_s = time.monotonic() - started
    # Then idempotent ones go to the other one before their timeout, and others wait for it
    assert servers[0].seen and set(servers[0].written) == set()
    if repeatable:
        assert 0.4 <= took_s < 9
        assert client.stats.answered == 100 and not client.in_doubt
        assert servers[0].options >= 1
    else:
        assert took_s >= 1.5
        assert client.in_doubt.keys() == servers[0].seen.keys()
        assert client.stats.answered == 100 - len(client.in_doubt)
        assert servers[0].options == servers[1].options == 0


def test_a_forgotten_counter_statement_is_prepared_again(
    server: ScriptedServer, client: Client
) -> None:
    server.known.clear()
    client.exec(COUNT, IDS)
    check_each_reported_once(client, server, doubts=False)
    assert client.stats.answered == ROWS
    assert server.prepares == 1 and server.unprepared == client.stats.retries > 0


def test_requests_that_were_never_applied_are_rejected_and_not_repeated(
    server: ScriptedServer, client: Client
) -> None:
    client.retries_max = 2
    server.script = lambda request: (
        error(request, UNAVAILABLE, "1 of 2") if request.row == 77 else void(request)
    )
    client.exec(COUNT, IDS)
    assert client.rejected == {77: "tried 3 times: unavailable: 1 of 2"}
    assert client.stats.answered == ROWS - 1
    # An idempotent statement releases the unit, as a load does
    with pytest.raises(RequestFailed, match=r"a request failed 3 times, .*unavailable: 1 of 2"):
        client.exec(INSERT, IDS)


def test_every_row_is_accounted_for_when_the_server_fails(
    server: ScriptedServer, client: Client
) -> None:
    # Given a server that stops answering for good in the middle
    def end(request: Execute) -> Answer:
        server.startup_answer = protocol.error(0, 0x0000, "not today")
        return CLOSE

    server.script = first_time(end, {1200})
    client.exec(COUNT, IDS, block=100)
    check_each_reported_once(client, server)
    assert any("not sent: no replica took requests" in why for why in client.rejected.values())
    assert client.rejected.keys() | client.in_doubt.keys() >= set(range(ROWS - 100, ROWS))


@pytest.mark.parametrize("ordered", [True, False])
def test_received_answers_are_returned_when_the_server_fails(
    server: ScriptedServer, client: Client, ordered: bool
) -> None:
    # Given a server that answers whether a row's condition held, and stops in the middle
    def script(request: Execute) -> Answer:
        if request.row == 1500:
            server.startup_answer = protocol.error(0, 0x0000, "not today")
            return CLOSE
        body = struct.pack(">iii", 2, 1, 1) + protocol.string(KEYSPACE) + protocol.string("orders")
        body += protocol.string("[applied]") + struct.pack(">H", 4)  # a boolean
        body += struct.pack(">i", 1) + protocol.long_bytes(bytes([request.row % 2]))
        return Answer(protocol.reply(protocol.RESULT, body, request.stream), written=True)

    statement = statement_of("INSERT INTO shop.orders (id) VALUES (?) IF NOT EXISTS")
    statement = replace(statement, result=APPLIED)
    server.known.add(statement.prepared.query_id)
    server.script = script
    # When rows are written in blocks that finish out of order
    found = client.exec(statement, IDS, block=700, ordered=ordered)
    # Then every counted answer is returned once
    check_each_reported_once(client, server)
    numbers = [number for number, _ in found]
    assert len(set(numbers)) == len(numbers) == client.stats.rows == client.stats.answered > 0
    assert not set(numbers) & (client.rejected.keys() | client.in_doubt.keys())
    assert all(row == {"[applied]": bool(number % 2)} for number, row in found)
    assert not ordered or numbers == sorted(numbers)


def test_a_refused_row_is_a_reject(server: ScriptedServer, client: Client) -> None:
    for statement in (COUNT, INSERT):
        client.rejected.clear()
        server.script = lambda request: (
            error(request, INVALID, "bad") if request.row % 1000 == 7 else void(request)
        )
        client.exec(statement, IDS)
        assert client.rejected == {row: "bad" for row in range(7, ROWS, 1000)}
        assert client.stats.answered == ROWS - len(client.rejected)


@pytest.mark.parametrize("ordered", [True, False])
def test_reads_are_answered_once_despite_all_faults(
    server: ScriptedServer, client: Client, ordered: bool
) -> None:
    # Given every fault of connections and servers
    def fault(request: Execute) -> Answer:
        match request.row % 5:
            case 0:
                return CLOSE
            case 1:
                return error(request, READ_TIMEOUT)
            case 2:
                return error(request, OVERLOADED)
            case 3:
                half = one_row(request).data[:-3]
                return Answer(half, close=True)
            case _:
                return Answer(b"\0" * 30)

    server.script = first_time(fault, {100, 201, 302, 403, 504, 1500, 1601})
    script = server.script
    server.script = lambda request: (
        answer if not (answer := script(request)).written else one_row(request)
    )
    found = client.exec(SELECT, IDS, ordered=ordered)
    # Then each row has its answer, once
    assert sorted(found, key=lambda row: row[0]) == [(i, {"a": i, "b": None}) for i in range(ROWS)]
    assert not ordered or [number for number, _ in found] == list(range(ROWS))
    assert client.stats.answered == client.stats.rows == ROWS
    assert not client.in_doubt and not client.rejected


def test_answers_with_warnings_count(server: ScriptedServer, client: Client) -> None:
    server.script = lambda request: answer_rows(
        request, (request.row, 1), (request.row, 2), warning="many tombstones"
    )
    found = client.exec(SELECT, IDS)
    assert found == [(i, {"a": i, "b": b}) for i in range(ROWS) for b in (1, 2)]


def test_a_connection_that_ends_between_pages_loses_and_repeats_no_row(
    server: ScriptedServer, client: Client
) -> None:
    # Given answers of three pages of one row each, and connections that end before the second
    # page and before the third
    tries: Counter[int] = Counter()
    pages: Counter[int] = Counter()

    def script(request: Execute) -> Answer:
        tries[request.row] += 1
        if tries[request.row] in (2, 4):
            return CLOSE
        pages[request.row] += 1
        rows = [(request.row, pages[request.row] * 10 + i) for i in range(2)]
        return answer_rows(request, *rows, state=b"more" if pages[request.row] < 3 else None)

    server.script = script
    for row in range(5):
        client.rejected.clear()
        found = client.exec(SELECT, [str(row)])
        assert [one["b"] for _, one in found] == [10, 11, 20, 21, 30, 31]
        assert (tries[row], client.stats.retries, client.stats.pages) == (5, 2, 2)


def test_a_row_that_cannot_be_read_is_a_reject(server: ScriptedServer, client: Client) -> None:
    server.script = lambda request: (
        error(request, READ_FAILURE, "tombstones") if request.row == 9 else one_row(request)
    )
    found = client.exec(SELECT, IDS)
    assert len(found) == ROWS - 1
    assert client.rejected == {9: "read_failure: tombstones"}
    assert server.seen[9] == 3


def test_a_reject_after_some_pages_reports_the_rows_in_the_output(
    server: ScriptedServer, client: Client
) -> None:
    # Given answers of two pages, where the second page of one row always fails
    started: set[int] = set()

    def script(request: Execute) -> Answer:
        if request.row in started:
            failed = error(request, READ_FAILURE, "tombstones")
            return failed if request.row == 9 else answer_rows(request, (request.row, 3))
        started.add(request.row)
        return answer_rows(request, (request.row, 1), (request.row, 2), state=b"more")

    server.script = script
    found = client.exec(SELECT, IDS)
    assert sum(number == 9 for number, _ in found) == 2 and len(found) == 3 * ROWS - 1
    reason = "read_failure: tombstones; the 2 rows before that are in the output"
    assert client.rejected == {9: reason}


def test_an_error_of_every_row_fails_the_job(server: ScriptedServer, client: Client) -> None:
    server.script = first_time(lambda request: error(request, SYNTAX, "eh"), {1000})
    with pytest.raises(ClusterError, match="does not run the statement: eh"):
        client.exec(COUNT, IDS)


def test_a_stopped_unit_leaves_no_answers_to_the_next(
    server: ScriptedServer, client: Client
) -> None:
    client.retries_max = 0
    server.script = first_time(lambda request: error(request, UNAVAILABLE), {500})
    with pytest.raises(RequestFailed):
        client.exec(INSERT, IDS)
    server.script = void
    client.exec(INSERT, IDS)
    assert client.stats.answered == ROWS


@pytest.mark.parametrize("code", [0x0000, 0x1500, 0x7777])
def test_an_ambiguous_error_that_repeats_for_one_row_rejects_it(
    server: ScriptedServer, client: Client, code: int
) -> None:
    for statement, answer in ((INSERT, void), (SELECT, one_row)):
        client.rejected.clear()
        server.script = lambda request, answer=answer: (  # type: ignore[misc]
            error(request, code, "odd") if request.row == 77 else answer(request)
        )
        client.exec(statement, IDS)
        assert set(client.rejected) == {77} and "odd" in client.rejected[77]
        assert client.stats.answered == ROWS - 1 and not client.in_doubt


def test_a_failed_non_idempotent_write_is_in_doubt_and_sent_once(
    server: ScriptedServer, client: Client
) -> None:
    server.script = lambda request: (
        error(request, 0x1500, "1 failures: UNKNOWN from /10.0.0.1:7000")
        if request.row == 77
        else void(request)
    )
    client.exec(COUNT, IDS)
    check_each_reported_once(client, server)
    assert set(client.in_doubt) == {77} and "reason unknown" in client.in_doubt[77]
