"""A managed cluster in miniature: a secure connect bundle, a metadata service, an SNI proxy.

As at Astra DB, clients prove themselves by the bundle's certificate, to both servers. The proxy
ends TLS and forwards to the node whose host id is the name in the handshake. Blocking sockets, two
threads a connection.
"""

from __future__ import annotations

import io
import json
import socket
import ssl
import threading
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.certificates import Authority
from tests.proxy import READ_BYTES, Address

LOOPBACK = "127.0.0.1"


def members_of(
    authority: Authority, port: int, client: Authority | None = None, **config: object
) -> dict[str, bytes]:
    """The members of a bundle. `client`: who issued the client's certificate, if another."""
    key, cert = (client or authority).issue("a client")
    found = {"host": LOOPBACK, "port": port, "keyspace": "shop", "localDC": "dc", **config}
    return {
        "config.json": json.dumps(found).encode(),
        "ca.crt": authority.certificate.encode(),
        "cert": cert.encode(),
        "key": key.encode(),
        "cqlshrc": b"[connection]\n",  # real ones have more members, which are not read
    }


def zipped(members: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return data.getvalue()


def server_context(folder: Path, authority: Authority, clients: Authority) -> ssl.SSLContext:
    """A server's context, for clients with a certificate of an authority."""
    key, cert = authority.issue("a server")
    (folder / "server.pem").write_text(key + cert)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    context.load_verify_locations(cadata=clients.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


Answer = tuple[int, bytes]


@contextmanager
def metadata_service(context: ssl.SSLContext, answer: Callable[[], Answer]) -> Iterator[int]:
    """Serve `GET /metadata` by HTTPS during the block; gives the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answer() if self.path == "/metadata" else (404, b"")
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Clients that end a handshake are part of the tests."""

    with Server((LOOPBACK, 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(10)


class SniProxy:
    """Ends TLS, and forwards to the node of the host id in the handshake, until `stop`."""

    def __init__(self, context: ssl.SSLContext, nodes: Mapping[str, Address]) -> None:
        self.connections: Counter[str] = Counter()  #: by host id
        self._names: dict[int, str] = {}
        self._nodes = nodes
        self._context = context
        context.sni_callback = self._named
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def _named(
        self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext
    ) -> int | None:
        if name not in self._nodes:
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        self._names[id(connection)] = name
        return None

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                plain, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError), plain:
            client = self._context.wrap_socket(plain, server_side=True)
            name = self._names.pop(id(client))
            with client, socket.create_connection(self._nodes[name], 5) as node:
                node.settimeout(None)
                node.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self.connections[name] += 1
                    self._open |= {client, node}
                answers = threading.Thread(target=_forward, args=(node, client), daemon=True)
                answers.start()
                _forward(client, node)
                answers.join(10)


def _forward(source: socket.socket, to: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(READ_BYTES):
            to.sendall(data)
    for one in (source, to):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


@dataclass
class Managed:
    """A managed cluster: its bundle, and what its servers answer."""

    bundle: Path
    members: dict[str, bytes]
    proxy: SniProxy
    authority: Authority
    stranger: Authority = field(default_factory=lambda: Authority("a stranger"))
    answer: Answer = (200, b"")

    def write(self, path: Path, **changed: bytes | None) -> Path:
        """Write another bundle with some members changed or, with None, left out."""
        names = {"config": "config.json", "ca": "ca.crt"}
        members = self.members | {names.get(n, n): data for n, data in changed.items() if data}
        gone = {names.get(n, n) for n, data in changed.items() if data is None}
        path.write_bytes(zipped({n: data for n, data in members.items() if n not in gone}))
        return path


@contextmanager
def managed_cluster(
    folder: Path, nodes: Mapping[str, Address], local_dc: str = "datacenter1", **config: object
) -> Iterator[Managed]:
    """Run the servers in front of nodes, by host id, during the block."""
    authority = Authority("a managed cluster")
    proxy = SniProxy(server_context(folder, authority, authority), nodes)
    try:
        context = server_context(folder, authority, authority)
        with metadata_service(context, lambda: managed.answer) as port:
            members = members_of(authority, port, **config)
            managed = Managed(folder / "bundle.zip", members, proxy, authority)
            managed.write(managed.bundle)
            contact = {
                "type": "sni_proxy",
                "local_dc": local_dc,
                "sni_proxy_address": f"{LOOPBACK}:{proxy.port}",
                "contact_points": list(nodes),
            }
            managed.answer = (200, json.dumps({"contact_info": contact}).encode())
            yield managed
    finally:
        proxy.stop()
