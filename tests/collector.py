"""A collector of OpenTelemetry for tests: it keeps the spans that it gets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Collector(ThreadingHTTPServer):
    """OTLP over HTTP, in JSON, on loopback."""

    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = status
        self.bodies: list[str] = []
        self.headers: list[dict[str, str]] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def spans(self) -> list[dict[str, Any]]:
        """Every span, with its attributes and those of its process as a dict."""
        return [
            span
            | {
                "attributes": _values(span["attributes"]),
                "resource": _values(group["resource"]["attributes"]),
            }
            for body in self.bodies
            for group in json.loads(body)["resourceSpans"]
            for scope in group["scopeSpans"]
            for span in scope["spans"]
        ]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Collector)
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        assert (self.path, self.headers["Content-Type"]) == ("/v1/traces", "application/json")
        self.server.bodies.append(body)
        self.server.headers.append(dict(self.headers))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        pass


def _values(attributes: list[dict[str, Any]]) -> dict[str, str | int]:
    return {
        one["key"]: int(one["value"]["intValue"])
        if "intValue" in one["value"]
        else one["value"]["stringValue"]
        for one in attributes
    }


@contextmanager
def running_collector(status: int = 200) -> Iterator[Collector]:
    """Run a collector during the block."""
    with Collector(status) as collector:
        thread = threading.Thread(target=collector.serve_forever, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            collector.shutdown()
            thread.join()
