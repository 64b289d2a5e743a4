"""A unit within its job's limits: rows at once, requests in flight."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from ringhaul.dataplane.latency import percentile_ms
from ringhaul.dataplane.pacing import BOUNDLESS, FREE, Leave
from tests.integration.load.pipeline_client import (
    ROWS,
    Client,
    Stop,
    check_all_written,
    encoded_rows,
    stop_once,
)
from tests.scripted_server import SILENCE, Answer, Execute, ScriptedServer, scripted_servers, void


@pytest.fixture
def servers() -> Iterator[list[ScriptedServer]]:
    with scripted_servers(3) as three:
        yield three


@pytest.mark.parametrize("requests", [1, 7, 100])
def test_unanswered_requests_are_limited_over_all_servers(
    servers: list[ScriptedServer], client: Client, requests: int
) -> None:
    for server in servers:
        server.script = lambda request: SILENCE

    def seen() -> int:
        return sum(server.seen.total() for server in servers)

    stop_once(client, lambda: seen() >= requests / 2)
    client.leave = Leave(BOUNDLESS, requests)
    with pytest.raises(Stop):
        client.load(ROWS)
    assert requests / 2 <= seen() <= requests


@pytest.mark.parametrize("requests", [1, 7, 100])
def test_every_row_arrives_with_few_requests_in_flight(
    servers: list[ScriptedServer], client: Client, requests: int
) -> None:
    client.leave = Leave(BOUNDLESS, requests)
    writer = client.writer()
    lock, arrived, most = threading.Lock(), 0, 0

    def counted(request: Execute) -> Answer:
        nonlocal arrived, most
        with lock:
            arrived += 1
            most = max(most, arrived - writer.stats.written)
        return void(request)

    for server in servers:
        server.script = counted
    for first in range(0, ROWS, 500):
        writer.write(encoded_rows(first, 500))
    writer.flush()
    check_all_written(writer, *servers)
    assert most <= requests


def test_a_changed_limit_applies_while_rows_are_sent(
    servers: list[ScriptedServer], client: Client
) -> None:
    # Given a unit with one request in flight, and servers that hold all but the first
    client.leave = Leave(BOUNDLESS, 1)
    free = threading.Event()

    def held(request: Execute) -> Answer:
        if not free.is_set():
            # When the limit is removed, the others are sent although none is answered
            client.leave = FREE
            free.set()
            return SILENCE
        return void(request)

    for server in servers:
        server.script = held
    seen: list[int] = []

    def enough() -> None:
        seen.append(sum(server.seen.total() for server in servers))
        if seen[-1] > ROWS / 2:
            raise Stop

    client.on_tick = enough
    with pytest.raises(Stop):
        client.load(ROWS)


def test_rows_are_paid_for_a_few_at_a_time(servers: list[ScriptedServer], client: Client) -> None:
    client.leave = Leave(5, BOUNDLESS)
    paid: list[int] = []
    client.on_throttle = paid.append
    check_all_written(client.load(ROWS), *servers)
    assert max(paid) == 5


def test_answers_are_read_while_a_limit_delays_rows(
    servers: list[ScriptedServer], client: Client
) -> None:
    # Given a limit of ten rows each 0.1 s, and servers that answer at once
    client.leave = Leave(10, BOUNDLESS)
    writer = client.writer()
    behind: list[int] = []

    def hold_up(rows: int) -> None:
        behind.append(client.throttled - rows - writer.stats.written)
        time.sleep(0.1)

    client.on_throttle = hold_up
    writer.write(encoded_rows(0, 200))
    writer.flush()
    check_all_written(writer, *servers, rows=200)
    # Then each ten are acknowledged before the next ten are sent, and their latencies are
    # those of the servers
    assert max(behind[1:]) <= 10
    assert sum(behind) / len(behind) < 3
    p50_ms = percentile_ms(writer.stats.latencies, 0.5)
    assert p50_ms is not None
    assert p50_ms < 50
