"""What a client does about the distance of a server, against scripted servers."""

from __future__ import annotations

import socket
import time

import pytest

from ringhaul.dataplane import connection, sounding
from ringhaul.dataplane.connection import SEND_BUFFER_BYTES, NodeConnection
from ringhaul.load.write import pipeline
from tests.acceptance.command import wait_until
from tests.integration.load.pipeline_client import ROWS, Client, check_all_written
from tests.scripted_server import Answer, Execute, ScriptedServer, void


def opened(client: Client) -> NodeConnection[object]:
    """Return the open connection to the only server."""
    wait_until(lambda: client.plane.connection(client.hosts[0]) is not None, "a connection")
    (found,) = client.plane.open_connections()
    return found


def test_the_log_in_tells_how_far_a_server_is(client: Client) -> None:
    assert 0 < opened(client).window.distance.seconds < 0.5
    assert client.plane.distance_s == opened(client).window.distance.seconds


def test_a_distance_in_doubt_is_measured_on_another_connection(
    server: ScriptedServer, client: Client
) -> None:
    # Given an estimate that is far too low, which nothing has confirmed for a while
    distance = opened(client).window.distance
    distance.measured(1e-6, time.monotonic() - 100)

    def slowly(request: Execute) -> Answer:
        time.sleep(0.2)
        return void(request)

    server.script = slowly
    # When rows are written, and answers take longer than the estimate explains
    check_all_written(client.load(5), server, rows=5)
    wait_until(lambda: client.plane.sound(time.monotonic()) is None and server.options == 3, "it")
    # Then it is corrected, by the answers to three requests that did not wait behind the rows
    wait_until(lambda: client.plane.sound(time.monotonic()) is None and distance.seconds > 1e-6, "")
    assert distance.seconds < 0.2
    assert not distance.in_doubt(time.monotonic())


def test_a_server_that_takes_no_further_connection_keeps_its_estimate(
    server: ScriptedServer, client: Client
) -> None:
    distance = opened(client).window.distance
    distance.measured(0.001, time.monotonic() - 100)
    server.answers_options = False
    began_s = time.monotonic()
    client.plane.sound(began_s)
    assert time.monotonic() - began_s < sounding.TIMEOUT_S - 1, "the load waited for it"
    check_all_written(client.load(ROWS), server)
    assert distance.seconds <= 0.001


def test_rows_wait_for_the_trial_as_long_as_the_way_takes(
    server: ScriptedServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a server whose answers take longer than a near server's trial may, because it is far
    monkeypatch.setattr(pipeline, "TRIAL_WAIT_S", 0.05)
    opened(client).window.distance.measured(5.0, time.monotonic())

    def from_afar(request: Execute) -> Answer:
        if server.requests <= 1:
            time.sleep(0.3)
        return void(request)

    server.script = from_afar
    client.batches = True
    check_all_written(client.load(500), server, rows=500)
    # Then all rows share requests
    assert server.requests == 50


@pytest.mark.parametrize("near", [True, False])
def test_the_send_buffer_of_a_far_connection_is_left_to_the_kernel(
    client: Client, monkeypatch: pytest.MonkeyPatch, near: bool
) -> None:
    set_to = []
    setsockopt = socket.socket.setsockopt

    def note(self: socket.socket, level: int, option: int, value: int) -> None:
        if option == socket.SO_SNDBUF:
            set_to.append(value)
        setsockopt(self, level, option, value)

    monkeypatch.setattr(socket.socket, "setsockopt", note)
    monkeypatch.setattr(connection, "NEAR_CONNECT_S", 60.0 if near else -1.0)
    opened(client)
    assert set_to == ([SEND_BUFFER_BYTES] if near else [])
