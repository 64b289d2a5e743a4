"""Notifications of a run's end: a real command, a real web server on loopback."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from producer.schedule import notify as schedule_notify
from producer.schedule.notify import find_problem, send_notification
from ringhaul.schedule.schedules import Notify

DOCUMENT = {"schedule": "nightly", "state": "FAILED", "steps": [{"exit_code": 4}]}
NOTIFY = Notify(on=frozenset({"failure"}), timeout_s=5)


class Server(HTTPServer):
    """Answers each POST with the next of its codes, then with 200."""

    codes: list[int]
    got: list[tuple[str, dict[str, str], Any]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), json.loads(body)))
        self.send_response(self.server.codes.pop(0) if self.server.codes else 200)
        self.send_header("Location", f"{self.server.url}/elsewhere")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server(("127.0.0.1", 0), _Handler)
    found.codes, found.got = [], []
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_notify, "PAUSE_S", 0.01)


def test_a_webhook_gets_the_document(server: Server, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("Bearer abc\n")
    notify = replace(NOTIFY, webhook=server.url, authorization_file=str(tmp_path / "token"))
    assert send_notification(notify, DOCUMENT) == "ok"
    ((path, headers, body),) = server.got
    assert (path, body) == ("/hook", DOCUMENT)
    assert headers["Content-Type"] == "application/json"
    assert headers["Authorization"] == "Bearer abc"


def test_a_secret_address_is_read_from_a_file_and_in_no_message(
    server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "webhook"
    file.write_text(f"{server.url}/s3cret\n")
    notify = replace(NOTIFY, webhook_file=str(file))
    assert send_notification(notify, DOCUMENT) == "ok"
    assert server.got[0][0] == "/hook/s3cret"
    server.codes = [404]
    assert send_notification(notify, DOCUMENT) == "webhook: status 404"
    file.write_text("ftp://host/s3cret\n")
    assert "s3cret" not in send_notification(notify, DOCUMENT)
    file.unlink()
    assert send_notification(notify, DOCUMENT).startswith("webhook: webhook_file: cannot read")


def test_a_busy_server_is_notified_again(server: Server) -> None:
    server.codes = [503, 429]
    assert send_notification(replace(NOTIFY, webhook=server.url), DOCUMENT) == "ok"
    assert len(server.got) == 3
    server.codes = [500, 500, 500]
    assert send_notification(replace(NOTIFY, webhook=server.url), DOCUMENT) == "webhook: status 500"
    assert len(server.got) == 6


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_no_redirect_is_followed(server: Server, code: int) -> None:
    server.codes = [code]
    assert (
        send_notification(replace(NOTIFY, webhook=server.url), DOCUMENT)
        == f"webhook: status {code}"
    )
    assert len(server.got) == 1


def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_notify, "TRIES", 1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        began = time.monotonic()
        message = send_notification(replace(NOTIFY, webhook=url, timeout_s=1), DOCUMENT)
        assert message.startswith("webhook: ") and "127.0.0.1" not in message
        assert time.monotonic() - began < 20


def test_a_command_gets_the_document_on_its_standard_input(tmp_path: Path) -> None:
    out = tmp_path / "got.json"
    notify = replace(NOTIFY, command=("/bin/sh", "-c", f"cat > '{out}'"))
    assert send_notification(notify, DOCUMENT) == "ok"
    assert json.loads(out.read_text()) == DOCUMENT


def test_an_unusable_notification_is_found_before_a_run_ends(tmp_path: Path) -> None:
    address, token = tmp_path / "webhook", tmp_path / "token"
    webhook = replace(NOTIFY, webhook_file=str(address), authorization_file=str(token))
    address.write_text("https://h/s3cret\n")
    assert (find_problem(webhook) or "").startswith(
        f"authorization_file: cannot read {token}: No such"
    )
    token.write_text("Bearer x\n")
    assert find_problem(webhook) is None
    for text, message in {
        "": "is empty",
        "ftp://h/s3cret": "expected an address that begins with https",
    }.items():
        address.write_text(text)
        found = find_problem(webhook) or ""
        assert f"webhook_file: {address}" in found and message in found and "s3cret" not in found
    assert find_problem(replace(NOTIFY, webhook="https://h/")) is None

    # A pipe cannot be read twice
    os.mkfifo(tmp_path / "pipe")
    assert find_problem(replace(NOTIFY, webhook_file=str(tmp_path / "pipe"))) is None


def test_a_missing_command_is_found_before_a_run_ends(tmp_path: Path) -> None:
    script = tmp_path / "tell"
    command = replace(NOTIFY, command=(str(script), "me"))
    message = f"command {script}: not found, or this user may not run it"
    assert find_problem(command) == message
    script.write_text("#!/bin/sh\n")
    assert find_problem(command) == message
    script.chmod(0o700)
    assert find_problem(command) is None
    assert find_problem(replace(NOTIFY, command=("sh", "-c", "true"))) is None
    assert find_problem(replace(NOTIFY, command=("no-such-command",))) is not None


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    # A child holds the other end of a pipe as long as it runs
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    command = ("/bin/sh", "-c", f"exec > '{pipe}'; echo up; sleep 40; true")
    assert send_notification(replace(NOTIFY, command=command, timeout_s=1), DOCUMENT) == (
        "sh: took more than 1 s"
    )
    os.set_blocking(reader, True)
    began = time.monotonic()
    with open(reader, "rb") as file:
        assert file.read() == b"up\n"
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("command", "timeout_s", "message"),
    [
        (("/bin/sh", "-c", "exit 3"), 60, "sh: exit code 3"),
        (("/no/such",), 60, "such: No such file or directory"),
        (("/bin/sh", "-c", "sleep 30"), 1, "sh: took more than 1 s"),
    ],
)
def test_a_command_that_fails_is_reported(
    command: tuple[str, ...], timeout_s: int, message: str
) -> None:
    notify = replace(NOTIFY, command=command, timeout_s=timeout_s)
    assert send_notification(notify, DOCUMENT) == message
