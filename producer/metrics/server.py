"""A small web server for `/metrics`, for fleets without Flower."""

from __future__ import annotations

import socket
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from ringhaul.errors import UsageError

#: A client that sends or reads nothing for this long is let go.
CLIENT_S = 10


class MetricsServer(ThreadingHTTPServer):
    """Serves the metrics of a registry. `serve_forever` runs it, `shutdown` ends it."""

    daemon_threads = True

    def __init__(self, address: str, port: int, registry: CollectorRegistry) -> None:
        """Listen on `address` and `port` (0: any). Raises `UsageError` if that is impossible."""
        self.registry = registry
        try:
            family, _, _, _, place = socket.getaddrinfo(
                address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            self.address_family = family
            super().__init__((str(place[0]), int(place[1])), _Handler)
        except OSError as error:
            why = error.strerror or str(error)
            raise UsageError(
                f"cannot listen on {address} port {port}: {why}; give another --port or --address"
            ) from error

    @property
    def url(self) -> str:
        """The address of the metrics."""
        host, port = str(self.server_address[0]), int(self.server_address[1])
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"


class _Handler(BaseHTTPRequestHandler):
    timeout = CLIENT_S
    server_version = "ringhaul"
    sys_version = ""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/metrics":
            assert isinstance(self.server, MetricsServer)
            encoder, content_type = choose_encoder(self.headers.get("Accept", ""))
            self._answer(HTTPStatus.OK, content_type, encoder(self.server.registry))
        elif path == "/healthcheck":
            self._answer(HTTPStatus.OK, "text/plain", b"OK")
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"/metrics is here\n")

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log no request: there is one every few seconds."""
