"""A server that speaks the interface of Cassandra Sidecar, as its sources publish it, and breaks it
on request.

Sidecar's server is in no registry of packages, so loads are tested against this one. It takes
uploads, checks digests and has a function import them: one import of a table at a time, each result
kept with its upload, failures included. Classes: `SSTableUploadHandler`, `SSTableImportHandler`,
`SSTableCleanupHandler`, `SSTableUploadsPathBuilder`, `CassandraInputValidationConfigurationImpl`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import ssl
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

#: Imports a folder of a table at the node with an address; returns what went wrong, or nothing.
Importer = Callable[[str, str, str, Path, dict[str, str]], str]

#: Patterns that Sidecar's configuration has by default.
_UPLOAD_ID = re.compile(r"[0-9a-fA-F\-:]{36,110}")
_COMPONENT = re.compile(r"[a-zA-Z0-9_+\-]+(\.db|\.cql|\.json|\.crc32|TOC\.txt)")
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,47}")
_QUOTED_NAME = re.compile(r"[a-zA-Z_0-9]{1,48}")
_PATHS = {
    "health": re.compile(r"/api/v1/(?:cassandra/(?:native|jmx)/)?__health"),
    "upload": re.compile(
        r"/api/v1/uploads/([^/]+)/keyspaces/([^/]+)/tables/([^/]+)/components/([^/]+)"
    ),
    "import": re.compile(r"/api/v1/uploads/([^/]+)/keyspaces/([^/]+)/tables/([^/]+)/import"),
    "remove": re.compile(r"/api/v1/uploads/([^/]+)"),
}
_METHODS = {"health": "GET", "upload": "PUT", "import": "PUT", "remove": "DELETE"}
_REASONS = {455: "Checksum Mismatch"}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What happens to one request instead of what should."""

    status: int = 0  #: this answer, at once; nothing of the body is read
    message: str = "out of order"
    retry_after: str | None = None
    stays_open: bool = False  #: with a status: the connection, of which nothing more is read
    cut_after: int | None = None  #: so many bytes of the body the connection ends
    forgets: bool = False  #: the request is served, and its answer lost
    damages: bool = False  #: a byte of the body is changed
    hangs: bool = False  #: nothing happens
    raw: bytes = b""  #: this answer, when the beginning of the body has come
    file: str = ""  #: only for a file that ends like this, or an import of one


@dataclass
class Sidecar:
    """A Sidecar of some nodes, on a port of 127.0.0.1."""

    staging: Path
    importer: Importer
    hosts: set[str]  #: addresses of its nodes
    knows: Callable[[str, str], bool] = lambda keyspace, table: True
    token: str = ""  #: that requests must have
    import_s: float = 0.0  #: how long an import takes at least
    port: int = 0
    #: For the next requests of a kind: health, upload, import, remove.
    faults: dict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))
    always: dict[str, Fault] = field(default_factory=dict)  #: for all requests of a kind
    #: Each request: its kind, host, upload, file or query, and the status of its answer.
    log: list[tuple[str, str, str, str, int]] = field(default_factory=list)
    broken: list[BaseException] = field(default_factory=list)  #: errors of this server itself
    stopped: threading.Event = field(default_factory=threading.Event)
    _imports: dict[tuple[str, ...], Future[str]] = field(default_factory=dict)
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def statuses(self, kind: str) -> list[int]:
        """Return the answers to requests of a kind, in order; 0: none was sent."""
        return [status for found, _, _, _, status in self.log if found == kind]

    def uploads(self) -> list[str]:
        """Return the ids of uploads that are staged."""
        return [path.name for path in self.staging.iterdir()]

    def handle(self, request: _Request) -> None:
        """Serve one request."""
        url = urlsplit(request.path)
        kind, parts = "unknown", ()
        for name, pattern in _PATHS.items():
            if request.command == _METHODS[name] and (found := pattern.fullmatch(url.path)):
                kind, parts = name, tuple(map(unquote, found.groups()))
                break
        host = request.headers.get("Host", "").rpartition(":")[0].strip("[]")
        detail = (parts[3] if kind == "upload" else url.query) if parts else url.path
        with self._lock:
            place = len(self.log)
            self.log.append((kind, host, parts[0] if parts else "", detail, 0))

        def note(status: int) -> None:
            self.log[place] = (*self.log[place][:4], status)

        request.note = note
        self._served(request, kind, host, parts, dict(parse_qsl(url.query)))

    def _served(
        self,
        request: _Request,
        kind: str,
        host: str,
        parts: tuple[str, ...],
        query: dict[str, str],
    ) -> int:
        fault = self._fault(kind, parts)
        if fault.hangs:
            self.stopped.wait()
            return request.drop()
        if fault.raw:
            request.rfile.read(min(1000, int(request.headers.get("Content-Length", 0))))
            request.wfile.write(fault.raw)
            return request.drop()
        if fault.cut_after is not None:
            request.rfile.read(fault.cut_after)
            return request.drop()
        if fault.status:
            request.refuse(fault.status, fault.message, fault.retry_after)
            if fault.stays_open:
                self.stopped.wait()
            return fault.status
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return request.refuse(401, "Unauthorized")
        if kind != "unknown" and host not in self.hosts:
            return request.refuse(421, f"Instance with host address '{host}' not found")
        if kind == "health":
            return request.answer(200, {"status": "OK"})
        if kind == "unknown":
            return request.refuse(404, "Not Found")
        if not _UPLOAD_ID.fullmatch(parts[0]):
            return request.refuse(400, f"Invalid upload id is supplied, uploadId={parts[0]}")
        if kind == "remove":
            if not (self.staging / parts[0]).is_dir():
                return request.refuse(404, "Not Found")
            shutil.rmtree(self.staging / parts[0])
            return request.answer(200, None)
        names = [_name(part) for part in parts[1:3]]
        if "" in names:
            return request.refuse(400, f"Invalid characters in table name: {parts[2]}")
        folder = self.staging / parts[0] / names[0] / names[1]
        if kind == "upload":
            return self._upload(request, fault, folder, names, parts)
        return self._import(request, fault, host, folder, names, parts[0], query)

    def _fault(self, kind: str, parts: tuple[str, ...]) -> Fault:
        with self._lock:
            waiting = self.faults[kind]
            if waiting and self._concerns(waiting[0].file, kind, parts):
                return waiting.popleft()
        return self.always.get(kind, Fault())

    def _concerns(self, file: str, kind: str, parts: tuple[str, ...]) -> bool:
        if file and kind == "import":
            return any((self.staging / parts[0]).rglob(f"*{file}"))
        return not file or parts[-1].endswith(file)

    def _upload(
        self,
        request: _Request,
        fault: Fault,
        folder: Path,
        names: list[str],
        parts: tuple[str, ...],
    ) -> int:
        if not self.knows(*names):
            return request.refuse(
                400, f"Invalid table name '{names[1]}' supplied for keyspace '{names[0]}'"
            )
        if not _COMPONENT.fullmatch(parts[3]):
            return request.refuse(400, f"Invalid component name: {parts[3]}")
        folder.mkdir(parents=True, exist_ok=True)
        taken = bytearray(request.rfile.read(int(request.headers["Content-Length"])))
        if len(taken) != int(request.headers["Content-Length"]):
            return request.drop()
        if fault.damages:
            taken[len(taken) // 2] ^= 1
        digest = base64.b64encode(hashlib.md5(taken).digest()).decode()
        if request.headers.get("Content-MD5") not in (None, digest):
            return request.refuse(455, "Digest mismatch.")
        (folder / parts[3]).write_bytes(taken)
        if fault.forgets:
            return request.drop()
        return request.answer(
            200, {"uploadId": parts[0], "uploadSizeBytes": len(taken), "serviceTimeMillis": 1}
        )

    def _import(
        self,
        request: _Request,
        fault: Fault,
        host: str,
        folder: Path,
        names: list[str],
        upload: str,
        query: dict[str, str],
    ) -> int:
        key = (host, upload, *names, json.dumps(query, sort_keys=True))
        with self._lock:
            if key not in self._imports:
                if not folder.is_dir():
                    return request.refuse(404, f"File '{folder}' does not exist")
                self._imports[key] = self._threads.submit(
                    self._imported, host, names, folder, upload, query
                )
            future = self._imports[key]
        if fault.forgets:
            return request.drop()
        if not future.done():
            return request.answer(202, None)
        if error := future.result():
            return request.refuse(500, error)
        found = {"success": True, "uploadId": upload, "keyspace": names[0], "tableName": names[1]}
        return request.answer(200, found)

    def _imported(
        self, host: str, names: list[str], folder: Path, upload: str, query: dict[str, str]
    ) -> str:
        time.sleep(self.import_s)
        error = self.importer(host, names[0], names[1], folder, query)
        if not error:
            shutil.rmtree(self.staging / upload, ignore_errors=True)
        return error


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    sidecar: Sidecar

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep errors that are not those of a connection."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            self.sidecar.broken.append(error)


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    #: Called with the status of the answer before it is sent: a test looks as soon as it has it.
    note: Callable[[int], None]

    def do_GET(self) -> None:
        self.server.sidecar.handle(self)

    do_PUT = do_DELETE = do_GET

    def answer(self, status: int, body: dict[str, Any] | None, **headers: str) -> int:
        """Send an answer, and return its status."""
        text = b"" if body is None else json.dumps(body).encode()
        self.note(status)
        self.send_response(status, _REASONS.get(status))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        return status

    def refuse(self, status: int, message: str, retry_after: str | None = None) -> int:
        """Send an error; what is left of the body is not read."""
        self.close_connection = True
        headers = {} if retry_after is None else {"Retry_After": retry_after}
        return self.answer(
            status, {"status": "Fail", "code": status, "message": message}, **headers
        )

    def drop(self) -> int:
        """End the connection without an answer."""
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(2)
        return 0

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def _name(text: str) -> str:
    """Return a name as the schema has it; empty: Sidecar takes no such name."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1] if _QUOTED_NAME.fullmatch(text[1:-1]) else ""
    return text.lower() if _NAME.fullmatch(text) else ""


@contextmanager
def running_sidecar(sidecar: Sidecar, tls: ssl.SSLContext | None = None) -> Iterator[Sidecar]:
    """Run a Sidecar during the block, on a free port unless it has one."""
    sidecar.staging.mkdir(exist_ok=True)
    server = _Server(("127.0.0.1", sidecar.port), _Request)
    server.sidecar = sidecar
    sidecar.port = server.server_address[1]
    if tls is not None:
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield sidecar
        assert sidecar.broken == []
    finally:
        sidecar.stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()
        sidecar._threads.shutdown()


def server_tls(certificate: Path, key: Path, clients_ca: Path | None = None) -> ssl.SSLContext:
    """Return the TLS context of a Sidecar; `clients_ca`: clients need a certificate of this
    authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if clients_ca is not None:
        context.load_verify_locations(clients_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
