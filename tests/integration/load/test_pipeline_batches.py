"""Batches of `pipeline`: each row is written and counted once, or rejected by its number.

The server is scripted, as in test_pipeline_faults.py, which breaks connections under batches, too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from ringhaul.dataplane.base import RequestFailed
from ringhaul.dataplane.pacing import BOUNDLESS, Leave
from ringhaul.dataplane.window import BLOCK_REQUESTS, LIMIT_FIRST
from ringhaul.load.write import pipeline
from ringhaul.load.write.grouping import BATCH_PARTITIONS_MAX
from ringhaul.load.write.pipeline import TRIAL_ROWS
from tests.integration.load.pipeline_client import (
    ROWS,
    Client,
    Stop,
    check_all_written,
    connected_client,
    encoded_rows,
    stop_once,
)
from tests.scripted_server import (
    SILENCE,
    Answer,
    Execute,
    ScriptedServer,
    error,
    first_time,
    scripted_servers,
    void,
)

SERVER_ERROR, OVERLOADED, WRITE_TIMEOUT, INVALID = 0x0000, 0x1001, 0x1100, 0x2200
WARNING = "Unlogged batch covering 10 partitions detected against table [shop.orders]"


@pytest.fixture(autouse=True)
def patient_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the trial enough time on a slow machine."""
    monkeypatch.setattr(pipeline, "TRIAL_WAIT_S", 20.0)


@pytest.fixture
def client(servers: list[ScriptedServer]) -> Iterator[Client]:
    with connected_client(servers) as connected:
        connected.batches = True
        yield connected


def test_rows_share_requests_and_each_is_sent_once(server: ScriptedServer, client: Client) -> None:
    writer = client.load(ROWS)
    check_all_written(writer, server)
    assert set(server.seen.values()) == {1}
    assert server.requests == ROWS / BATCH_PARTITIONS_MAX
    assert sum(writer.stats.latencies.values()) == server.requests
    assert client.throttled == ROWS
    assert writer.stats.retries == 0


def test_each_server_gets_batches_of_the_rows_it_owns() -> None:
    with scripted_servers(3) as servers, connected_client(servers) as client:
        client.batches = True
        check_all_written(client.load(ROWS), *servers)
        # Rows that share a request go to the same server
        owner = {row: server for server in servers for row in server.written}
        assert len(owner) == ROWS == sum(server.seen.total() for server in servers)
        for server in servers:
            assert server.requests < server.seen.total() / 5


@pytest.mark.parametrize("code", [OVERLOADED, WRITE_TIMEOUT])
def test_a_batch_that_the_server_cannot_write_now_is_sent_again(
    server: ScriptedServer, client: Client, code: int
) -> None:
    # Given a server that refuses every batch of the first 1000 rows once
    server.script = first_time(lambda request: error(request, code), range(1000))
    writer = client.load(ROWS)
    check_all_written(writer, server)
    assert writer.stats.retries == 100
    assert {row for row, count in server.seen.items() if count == 2} == set(range(1000))
    assert not client.rejected


def test_a_forgotten_statement_is_prepared_again(server: ScriptedServer, client: Client) -> None:
    server.known.clear()
    check_all_written(client.load(ROWS), server)
    assert (server.prepares, server.connections) == (1, 1)
    assert set(server.seen.values()) == {1}


def test_a_refused_row_is_rejected_and_its_neighbours_are_written(
    server: ScriptedServer, client: Client
) -> None:
    # Given a server that refuses batches with any of three rows, two of them in one batch
    bad = {107, 109, 1999}

    def script(request: Execute) -> Answer:
        refused = sorted(bad.intersection(request.rows))
        return error(request, INVALID, f"row {refused[0]} is bad") if refused else void(request)

    server.script = script
    writer = client.load(ROWS)
    # Then those three are rejects with individual reasons, and their neighbours are written
    assert sorted(client.rejected) == [(row, f"row {row} is bad") for row in sorted(bad)]
    assert set(server.written) == set(range(ROWS)) - bad
    assert writer.stats.written == ROWS - len(bad)
    # And only the rows of their batches were sent again, one by one
    assert bad < {row for row, count in server.seen.items() if count == 2}
    assert max(server.seen.values()) == 2
    assert server.requests == 200 + sum(count == 2 for count in server.seen.values())
    assert server.requests <= 200 + 30


def test_a_batch_is_retried_up_to_the_limit(server: ScriptedServer, client: Client) -> None:
    client.retries_max = 3
    server.script = lambda request: (
        error(request, WRITE_TIMEOUT, "too slow") if 777 in request.rows else void(request)
    )
    with pytest.raises(RequestFailed, match=r"failed 4 times, .*write_timeout: too slow"):
        client.load(ROWS)
    assert server.seen[777] == 4


def test_a_server_that_warns_of_batches_gets_no_more_batches(
    server: ScriptedServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    # Given a server with an unusually low threshold
    server.script = lambda request: void(request, warnings=[WARNING] if request.batch else None)
    with caplog.at_level(logging.WARNING, logger="ringhaul"):
        units = [client.load(ROWS), client.load(ROWS, first=ROWS)]
    # Then it warned of the first few, and the log says so once
    assert [unit.stats.written for unit in units] == [ROWS, ROWS]
    assert set(server.written) == set(range(2 * ROWS))
    assert server.requests == 2 * ROWS - TRIAL_ROWS + TRIAL_ROWS / BATCH_PARTITIONS_MAX
    assert set(server.seen.values()) == {1}
    ours = [record for record in caplog.records if record.name.startswith("ringhaul.")]
    assert [record.getMessage() for record in ours] == [
        f"writing row by row, not in batches: the server says: {WARNING}"
    ]


def test_a_server_that_warns_later_gets_only_the_batches_in_flight(
    server: ScriptedServer, client: Client
) -> None:
    # Given a server that warns of batches from the 1000th row on
    def script(request: Execute) -> Answer:
        warned.extend(request.batch[:1] if request.row >= 1000 else ())
        late = request.batch and request.row >= 1000
        return void(request, warnings=[WARNING] if late else None)

    warned: list[int] = []
    server.script = script
    writer = client.load(20_000, block=5000)
    # Then the queued batches are split: of 1,900 only a window's worth is sent
    check_all_written(writer, server, rows=20_000)
    assert set(server.seen.values()) == {1}
    assert 0 < len(warned) <= LIMIT_FIRST + BLOCK_REQUESTS


@pytest.mark.parametrize(
    "words",
    ["large value", "column batch_id is large", "Guardrail tables violated by shop.batch"],
)
def test_other_warnings_change_nothing(server: ScriptedServer, client: Client, words: str) -> None:
    server.script = lambda request: void(request, warnings=[words])
    check_all_written(client.load(ROWS), server)
    assert server.requests == ROWS / BATCH_PARTITIONS_MAX


def test_a_server_that_refuses_batches_gets_single_rows(
    server: ScriptedServer, client: Client
) -> None:
    server.script = lambda request: (
        error(request, INVALID, "Batch too large") if request.batch else void(request)
    )
    check_all_written(client.load(ROWS), server)
    assert not client.rejected
    # The trial's rows are sent twice, all others once
    assert server.requests == ROWS + TRIAL_ROWS / BATCH_PARTITIONS_MAX


@pytest.mark.parametrize("code", [INVALID, SERVER_ERROR])
def test_a_row_alone_in_a_refused_batch_is_no_reject(
    server: ScriptedServer, client: Client, code: int
) -> None:
    # Given a server without batches, and rows of which the last is alone in its batch
    server.script = lambda request: (
        error(request, code, "BATCH is not supported") if request.batch else void(request)
    )
    writer = client.load(91)
    check_all_written(writer, server, rows=91)
    assert not client.rejected
    assert server.requests == 10 + 91


def test_rows_do_not_wait_long_for_the_trial(
    server: ScriptedServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a server that does not answer batches
    monkeypatch.setattr(pipeline, "TRIAL_WAIT_S", 0.05)
    server.script = lambda request: SILENCE if request.batch else void(request)

    def enough() -> None:
        if len(server.written) == 500 - TRIAL_ROWS or client.ticks > 500:
            raise Stop

    client.on_tick = enough
    with pytest.raises(Stop):
        client.load(500)
    # Then the other rows are written meanwhile, one by one
    assert len(server.written) == 500 - TRIAL_ROWS
    assert server.requests == 10 + 400


def test_large_rows_do_not_wait_for_the_trial(server: ScriptedServer, client: Client) -> None:
    # Given rows too large to share a batch, and no answers
    server.script = lambda request: SILENCE

    stop_once(client, lambda: server.seen.total() >= 200)
    writer = client.writer()
    with pytest.raises(Stop):
        writer.write(encoded_rows(0, 200, payload_bytes=4000))
        writer.flush()
    assert sum(server.seen.values()) == 200


@pytest.mark.parametrize("requests", [1, 7, 100])
def test_a_limit_on_requests_applies_to_batches(
    server: ScriptedServer, client: Client, requests: int
) -> None:
    client.leave = Leave(BOUNDLESS, requests)
    writer = client.writer()
    arrived = most = 0

    def counted(request: Execute) -> Answer:
        nonlocal arrived, most
        arrived += 1
        most = max(most, arrived - writer.stats.written // BATCH_PARTITIONS_MAX)
        return void(request)

    server.script = counted
    for first in range(0, ROWS, 500):
        writer.write(encoded_rows(first, 500))
    writer.flush()
    check_all_written(writer, server)
    assert server.requests == ROWS / BATCH_PARTITIONS_MAX
    assert most <= requests


def test_waiting_batches_are_split_when_a_limit_comes(
    server: ScriptedServer, client: Client
) -> None:
    paid: list[int] = []

    def throttle(rows: int) -> None:
        paid.append(rows)
        if sum(paid) >= 1000:
            client.leave = Leave(5, BOUNDLESS)

    client.on_throttle = throttle
    writer = client.load(10_000, block=10_000)
    check_all_written(writer, server, rows=10_000)
    # Batches that were allowed before are sent completely; later rows a few at a time
    assert max(paid) > 100 and max(paid[-1000:]) == 5
    assert set(server.seen.values()) == {1}


def test_only_a_few_rows_are_sent_before_the_first_answer(
    server: ScriptedServer, client: Client
) -> None:
    server.script = lambda request: SILENCE

    stop_once(client, lambda: server.seen.total() >= TRIAL_ROWS)
    with pytest.raises(Stop):
        client.load(ROWS)
    assert sum(server.seen.values()) == TRIAL_ROWS


@pytest.mark.parametrize(("leave_rows", "shares"), [(5, False), (100, True)])
def test_rows_at_a_slow_rate_are_sent_one_by_one(
    server: ScriptedServer, client: Client, leave_rows: int, shares: bool
) -> None:
    client.leave = Leave(leave_rows, BOUNDLESS)
    paid: list[int] = []
    client.on_throttle = paid.append
    check_all_written(client.load(ROWS), server)
    assert max(paid) == leave_rows
    assert server.requests == (ROWS / BATCH_PARTITIONS_MAX if shares else ROWS)


@pytest.mark.parametrize(("payload_bytes", "requests"), [(1000, 500), (2500, 2000), (9000, 2000)])
def test_a_batch_stays_below_the_warning_threshold(
    server: ScriptedServer, client: Client, payload_bytes: int, requests: int
) -> None:
    # Given rows of a size of which four, one or none fit into 5 KiB
    writer = client.writer()
    for first in range(0, ROWS, 500):
        writer.write(encoded_rows(first, 500, payload_bytes=payload_bytes))
    writer.flush()
    check_all_written(writer, server)
    assert server.requests == requests
