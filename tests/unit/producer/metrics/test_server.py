"""The web server of `ringhaul metrics`, with a registry of the test's own."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prometheus_client import CollectorRegistry, Gauge

from producer.metrics import server
from producer.metrics.server import MetricsServer
from ringhaul.errors import UsageError


@contextmanager
def serving(address: str = "127.0.0.1") -> Iterator[MetricsServer]:
    registry = CollectorRegistry()
    Gauge("shown", "A figure.", registry=registry).set(7)
    with MetricsServer(address, 0, registry) as found:
        thread = threading.Thread(target=found.serve_forever, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            found.shutdown()
            thread.join()


def ask(one: MetricsServer, method: str, path: str) -> tuple[int, bytes]:
    host, port = one.server_address[:2]
    connection = http.client.HTTPConnection(str(host), int(port), timeout=10)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_pages() -> None:
    with serving() as one:
        assert one.url == f"http://127.0.0.1:{one.server_address[1]}/metrics"
        code, text = ask(one, "GET", "/metrics?name[]=x")
        assert code == 200 and b"\nshown 7.0\n" in text
        assert ask(one, "GET", "/healthcheck") == (200, b"OK")
        for path in ("/", "/etc/passwd", "/metrics/../x"):
            assert ask(one, "GET", path)[0] == 404, path
        assert ask(one, "POST", "/metrics")[0] == 501


def test_an_address_of_ipv6() -> None:
    with serving("::1") as one:
        assert one.url.startswith("http://[::1]:")
        assert ask(one, "GET", "/healthcheck")[0] == 200


def test_a_client_that_sends_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server._Handler, "timeout", 1.0)
    with serving() as one, socket.create_connection(one.server_address[:2], timeout=10) as idle:
        idle.sendall(b"GET /metr")
        assert ask(one, "GET", "/metrics")[0] == 200, "others are served meanwhile"
        assert idle.recv(100) == b""


def test_what_cannot_be_listened_on() -> None:
    with serving() as one, pytest.raises(UsageError, match="give another --port or --address"):
        MetricsServer("127.0.0.1", int(one.server_address[1]), CollectorRegistry())
    with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1 port 0"):
        MetricsServer("192.0.2.1", 0, CollectorRegistry())
    with pytest.raises(UsageError, match=r"cannot listen on no\.such\.host\.invalid"):
        MetricsServer("no.such.host.invalid", 0, CollectorRegistry())
