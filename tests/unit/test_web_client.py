"""Exchanges with real servers on loopback: bounds of time and size, redirections, proxies."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException, InvalidURL

import pytest

from ringhaul.web_client import exchange, split, target_of
from tests.ports import closed_port

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@contextmanager
def answering(*answers: bytes, drip_s: float | None = None) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the port of a server, and the requests that it got. It gives one answer a connection,
    and then, with `drip_s`, a byte at a time until the client leaves."""
    requests: list[bytes] = []

    def serve() -> None:
        for answer in answers:
            with suppress(OSError), listener.accept()[0] as connection:
                requests.append(_request(connection))
                connection.sendall(answer)
                while drip_s is not None:
                    connection.sendall(b"x")
                    time.sleep(drip_s)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1], requests
        thread.join(10)


def _request(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as file:
        head = b"".join(iter(file.readline, b"\r\n")) + b"\r\n"
        size = next((line[16:] for line in head.split(b"\r\n") if b"Content-Length: " in line), 0)
        return head + file.read(int(size))


def test_a_request_and_its_answer() -> None:
    with answering(OK) as (port, requests):
        answer = exchange(
            "POST",
            f"http://127.0.0.1:{port}/a b?c=%20d#e",
            timeout_s=10,
            body_bytes_max=3,
            headers={"X-Key": "k"},
            body=b"sent",
        )
    assert answer == (200, "OK", b"hel"), "no more than the bound is read"
    (request,) = requests
    assert request.startswith(b"POST /a%20b?c=%20d HTTP/1.1\r\n")
    for line in (b"X-Key: k", b"User-Agent: ringhaul", b"Content-Length: 4", b"Connection: close"):
        assert b"\r\n" + line + b"\r\n" in request
    assert request.endswith(b"\r\n\r\nsent")


@pytest.mark.parametrize("status", [301, 307, 404, 503])
def test_any_status_is_an_answer_and_no_redirection_is_followed(status: int) -> None:
    moved = b"HTTP/1.1 %d Said\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n" % status
    with answering(moved) as (port, requests):
        answer = exchange("GET", f"http://127.0.0.1:{port}", timeout_s=10, body_bytes_max=9)
    assert answer == (status, "Said", b"")
    assert len(requests) == 1


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"])
def test_an_answer_byte_by_byte_ends_with_the_time(head: bytes) -> None:
    with answering(head, drip_s=0.02) as (port, _):
        began_s = time.monotonic()
        with pytest.raises(TimeoutError, match=r"its answer takes more than 0\.4 s"):
            exchange("GET", f"http://127.0.0.1:{port}", timeout_s=0.4, body_bytes_max=9999)
        assert time.monotonic() - began_s < 5


def test_what_is_not_answered() -> None:
    with closed_port() as port, pytest.raises(ConnectionRefusedError):
        exchange("GET", f"http://127.0.0.1:{port}", timeout_s=10, body_bytes_max=9)
    with answering(b"no HTTP\r\n\r\n") as (port, _), pytest.raises(HTTPException):
        exchange("GET", f"http://127.0.0.1:{port}", timeout_s=10, body_bytes_max=9)


@pytest.mark.parametrize("url", ["http://[::1/", "http://h:x/", "http:///path", "nothing"])
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(InvalidURL):
        exchange("GET", url, timeout_s=1, body_bytes_max=9)


def test_what_is_quoted_already_stays() -> None:
    assert target_of(split("https://h/%C3%A4 ä?x=[1]&y=%25")) == "/%C3%A4%20%C3%A4?x=[1]&y=%25"
    assert target_of(split("https://h?x")) == "/?x"


def test_a_proxy_gets_the_whole_address_and_its_own_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with answering(OK) as (port, requests):
        monkeypatch.setenv("http_proxy", f"http://me:p%40ss@127.0.0.1:{port}")
        url = "http://hooks.example:81/a?b"
        answer = exchange("GET", url, timeout_s=10, body_bytes_max=9, by_proxy=True)
    assert answer.body == b"hello"
    (request,) = requests
    assert request.startswith(b"GET http://hooks.example:81/a?b HTTP/1.1\r\n")
    assert b"\r\nHost: hooks.example:81\r\n" in request
    assert b"\r\nProxy-Authorization: Basic bWU6cEBzcw==\r\n" in request


def test_a_tunnel_through_a_proxy_that_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(b"HTTP/1.1 403 No\r\n\r\n") as (port, requests):
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{port}")
        with pytest.raises(OSError, match="Tunnel connection failed: 403"):
            exchange("GET", "https://hooks.example/", timeout_s=10, body_bytes_max=9, by_proxy=True)
    assert requests[0].startswith(b"CONNECT hooks.example:443 HTTP/1.")


@pytest.mark.parametrize(("excepted", "by_proxy"), [("127.0.0.1", True), ("", False)])
def test_a_proxy_that_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, excepted: str, by_proxy: bool
) -> None:
    with answering(OK) as (port, requests), closed_port() as closed:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed}")
        monkeypatch.setenv("no_proxy", excepted)
        url = f"http://127.0.0.1:{port}/"
        answer = exchange("GET", url, timeout_s=10, body_bytes_max=9, by_proxy=by_proxy)
    assert answer.status == 200 and requests[0].startswith(b"GET / ")
