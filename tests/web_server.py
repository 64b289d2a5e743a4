"""A web server on loopback, with or without ranges and with faults, as a test sets it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class WebServer(ThreadingHTTPServer):
    """Serves `files` by their names. Tests read and set the other attributes."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.ranges = True
        self.etag = '"1"'
        self.redirects: dict[str, str] = {}
        self.statuses: dict[str, list[int]] = {}  #: name -> answers before the right one
        self.cut_after_bytes = 0  #: cut answers after so many bytes; 0: do not
        self.cuts_left = 0
        self.tells_size = True
        self.content_range = ""  #: the Content-Range of each part; empty: the real one
        #: (name, Range) of each request, in the order in which they came.
        self.requests: list[tuple[str, str]] = []
        self.connections = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect in the middle of an answer: they only needed its size."""

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections += 1
        super().process_request(request, client_address)


@contextmanager
def running_web_server() -> Iterator[WebServer]:
    """Run a web server during the block."""
    server = WebServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: WebServer

    def do_GET(self) -> None:
        server, name = self.server, self.path.lstrip("/")
        wanted = self.headers.get("Range", "")
        server.requests.append((name, wanted))
        if server.statuses.get(name):
            self._empty(server.statuses[name].pop(0))
        elif name in server.redirects:
            self._empty(302, Location=server.redirects[name])
        elif name not in server.files:
            self._empty(404)
        else:
            self._send(server.files[name], wanted)

    def _send(self, data: bytes, wanted: str) -> None:
        server, total = self.server, len(data)
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted) if server.ranges else None
        if match and int(match[1]) >= total:
            self._empty(416, **{"Content-Range": f"bytes */{total}"})
            return
        if match:
            start, end = int(match[1]), min(int(match[2] or total), total - 1) + 1
            data = data[start:end]
            self.send_response(206)
            part = server.content_range or f"bytes {start}-{end - 1}/{total}"
            self.send_header("Content-Range", part)
        else:
            self.send_response(200)
        self.send_header("ETag", server.etag)
        if server.tells_size:
            self.send_header("Content-Length", str(len(data)))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        if server.cuts_left and len(data) > server.cut_after_bytes:
            server.cuts_left -= 1
            data = data[: server.cut_after_bytes]
            self.close_connection = True
        self.wfile.write(data)

    def _empty(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass
