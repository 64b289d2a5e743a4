"""Bring one SSTable to one node through its Cassandra Sidecar, and wait until its rows can be read
there.

A Sidecar runs beside a node. It takes the components of SSTables one by one into a folder, an
upload, that an id of ours names. Then it has the node import that folder by JMX, as nodetool does.
The first request for an import starts it, and further ones ask about it: 202 is "not yet". Sidecar
keeps the result with the id of the upload, failures included, so a further try needs another one.
Classes: `SSTableUploadHandler`, `SSTableImportHandler`, `SSTableCleanupHandler`,
`SSTableImporter`, `AbstractHandler`, `CassandraHealthHandler`.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from ringhaul.errors import EXIT_FATAL, RinghaulError, Terminal, Transient
from ringhaul.imports.command import NodeNotReached
from ringhaul.imports.exchange import (
    CONNECT_S,
    Answer,
    Exchange,
    NoHttp,
    Server,
    TlsRefused,
    host_and_port,
    words,
)
from ringhaul.imports.folder import NODE
from ringhaul.option_names import job_option
from ringhaul.sstables.build import Contents
from ringhaul.sstables.components import TOC, file_name, toc_bytes
from ringhaul.streaming.allowance import unlimited
from ringhaul.streaming.owners import Node
from ringhaul.streaming.session import StreamedSSTable, granted, md5

#: How long a Sidecar that is busy is waited for, in all, within one try.
BUSY_S = 120.0
#: The pause for a Sidecar that is busy and names none.
_BUSY_PAUSE_S = 1.0
#: Pauses between two requests about an import, at first and in the end.
_POLL_S, _POLL_MAX_S = 0.1, 2.0
#: Requests in a row for an import that may get no answer, and the pause between them.
_LOST_MAX, _LOST_PAUSE_S = 3, 1.0
_SAID_CHARACTERS = 300
_API = "/api/v1"
#: The checks of nodetool, which Sidecar would double: it reads all values by default.
_OPTIONS = "verifySSTables=true&verifyTokens=true&extendedVerify=false"
#: A file that Sidecar takes, and that nodes see no SSTable in.
_PROBE = "manifest.json"
_HEALTH = {
    "/__health": "the Sidecar is not healthy",
    "/cassandra/native/__health": "the Sidecar does not reach its Cassandra's port for clients",
    "/cassandra/jmx/__health": "the Sidecar does not reach its Cassandra's JMX port",
}
#: Names that CQL needs no quotes for.
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TIMED_OUT = 408
#: Status -> what to do; about `_TIMED_OUT`, see `_refused`.
_ADVICE = {
    401: "set sidecar.token_file, or sidecar.tls_cert and sidecar.tls_key",
    403: "this user needs STAGED_SSTABLE:UPLOAD, IMPORT and DELETE in Sidecar, and MODIFY on the "
    "table in Cassandra",
    421: "its cassandra_instances must have this node, with the address that other nodes know",
    455: "bytes changed on the way",
    500: "its log says why, and system.log of the node, in lines with 'import'",
    507: "free space on its staging_dir; sstable_upload.min_free_space_percent says how much",
}


class SidecarNotReached(NodeNotReached):
    """A node's Sidecar does not answer, does not reach its node, or takes too long."""


class SidecarRefused(Transient):
    """A Sidecar did not take or import an SSTable."""

    exit_code = EXIT_FATAL


class SidecarUnusable(Terminal):
    """A Sidecar wants another kind of connection than the settings say."""

    exit_code = EXIT_FATAL


@dataclass(frozen=True, kw_only=True)
class Sidecar:
    """How the Sidecars of nodes are reached."""

    host: str = NODE  #: may have `NODE`, the node's address
    port: int = 9043
    tls: ssl.SSLContext | None = None
    token: str = field(default="", repr=False)  #: bearer token; empty: none
    request_timeout_s: float = 60.0  #: without an answer, or without progress of an upload
    import_timeout_s: float = 600.0


class SidecarSession:
    """One try of one SSTable, or one check, at one node's Sidecar."""

    def __init__(self, node: Node, sidecar: Sidecar, keyspace: str, table: str) -> None:
        self._node, self._sidecar = node, sidecar
        self._upload = f"{_API}/uploads/{uuid.uuid4()}"
        self._table = f"{self._upload}/keyspaces/{_quoted(keyspace)}/tables/{_quoted(table)}"
        self._server = Server(
            host=sidecar.host.replace(NODE, node.address),
            port=sidecar.port,
            tls=sidecar.tls,
            timeout_s=sidecar.request_timeout_s,
        )
        self._lock = threading.Lock()
        self._exchange: Exchange | None = None
        self._is_aborted = threading.Event()
        self._has_uploaded = False  #: whether there may be something to remove
        self._has_answered = False
        self._busy_s = 0.0  #: waited for a Sidecar that is busy

    def send(self, sstable: StreamedSSTable, take: Callable[[int], int] = unlimited) -> None:
        """Return when the node serves the SSTable's rows. Nothing is left at the Sidecar.

        `take` is called before bytes are sent, with their number, and returns how many may go.

        Raises `SidecarNotReached`, `SidecarRefused`, `SidecarUnusable` or `SSTableDamaged`. The
        node may have imported the rows all the same: a further try imports the same ones.
        """
        sstable.check()
        listed = toc_bytes(name for name, _ in sstable.components)
        try:
            for name, contents in sstable.components:
                file = file_name(sstable.version, 1, name)
                self._put(file, contents, sstable.md5s[name], take)
            self._put(file_name(sstable.version, 1, TOC), listed, md5(listed))
            self._import()
        finally:
            self._remove()

    def probe(self) -> None:
        """Have the Sidecar take a file, and its node import a folder without SSTables: they do so
        only if they are up, know the table, and let us. Raises as `send` does."""
        for path, down in _HEALTH.items():
            answer = self._request("GET", _API + path)
            if answer.status == 503:
                raise SidecarNotReached(f"{self._where}: {down}")
            if answer.status != 200:
                raise self._refused("does not say whether it is healthy", answer)
        try:
            self._put(_PROBE, b"{}", md5(b"{}"))
            self._import()
        finally:
            self._remove()

    def abort(self) -> None:
        """End the session, from another thread. What it uploaded is still removed."""
        with self._lock:
            self._is_aborted.set()
            if self._exchange is not None:
                self._exchange.abort()

    @property
    def _where(self) -> str:
        """The node and how its Sidecar is reached, for messages."""
        return f"{self._node.address} (Sidecar at {self._server})"

    def _put(
        self, file: str, contents: Contents, digest: bytes, take: Callable[[int], int] = unlimited
    ) -> None:
        """Upload a file. If the Sidecar is busy, try again."""
        headers = {
            "Content-Length": str(len(contents)),
            "Content-Type": "application/octet-stream",
            "Content-MD5": base64.b64encode(digest).decode(),
        }
        path = f"{self._table}/components/{file}"
        while True:
            answer = self._request("PUT", path, headers, self._body(contents, take))
            if answer.status == 200 and answer.is_sent:
                break
            self._await_turn(f"did not take {file}", answer)
        taken = _field(answer, "uploadSizeBytes")
        if taken is not None and taken != len(contents):
            raise SidecarRefused(
                f"{self._where} took {taken} bytes of {file}, which has {len(contents)}"
            )

    def _body(self, contents: Contents, take: Callable[[int], int]) -> Iterator[bytes | memoryview]:
        for piece in granted(contents, take):
            self._has_uploaded = True
            yield piece

    def _import(self) -> None:
        """Have the node import the upload. A request without an answer is sent again: it begins the
        same import, or asks about it."""
        give_up_s = time.monotonic() + self._sidecar.import_timeout_s
        pause_s, lost = _POLL_S, 0
        while True:
            try:
                answer = self._request("PUT", f"{self._table}/import?{_OPTIONS}")
            except SidecarNotReached:
                lost += 1
                if lost >= _LOST_MAX:
                    raise
                self._sleep(_LOST_PAUSE_S)
            else:
                lost = 0
                if answer.status == 200 and _field(answer, "success") is not False:
                    return
                if answer.status != 202:
                    self._await_turn("did not import", answer)
            if time.monotonic() + pause_s > give_up_s:
                raise SidecarNotReached(
                    f"{self._where} did not import within {self._sidecar.import_timeout_s:,.0f} s "
                    "(sidecar.import_timeout_s)"
                )
            self._sleep(pause_s)
            pause_s = min(pause_s * 1.5, _POLL_MAX_S)

    def _remove(self) -> None:
        """Remove the upload, if the Sidecar can be reached. It has done so itself if its node
        imported the SSTable."""
        if not self._has_uploaded:
            return
        server = replace(self._server, timeout_s=min(CONNECT_S, self._server.timeout_s))
        with suppress(RinghaulError):
            self._run(Exchange(server), "DELETE", self._upload, {}, ())

    def _await_turn(self, what: str, answer: Answer) -> None:
        """Wait as long as a Sidecar that is busy says; raise `SidecarRefused` for one that is
        not, or that stays busy."""
        pause_s = answer.retry_after_s
        if answer.status == 429 and pause_s is None:
            pause_s = _BUSY_PAUSE_S
        if answer.status not in (429, 503) or pause_s is None:
            raise self._refused(what, answer)
        self._busy_s += max(pause_s, _POLL_S)
        if self._busy_s > BUSY_S:
            raise self._refused(what, answer)
        self._sleep(max(pause_s, _POLL_S))

    def _request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: Iterable[bytes | memoryview] = (),
    ) -> Answer:
        with self._lock:
            self._check()
            exchange = self._exchange = Exchange(self._server)
        return self._run(exchange, method, path, headers or {}, body)

    def _run(
        self,
        exchange: Exchange,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: Iterable[bytes | memoryview],
    ) -> Answer:
        # A Sidecar of several nodes knows by the host which is meant, wherever it is reached.
        known = {"Host": host_and_port(self._node.address, self._server.port)}
        if method != "GET" and "Content-Length" not in headers:
            known["Content-Length"] = "0"
        if self._sidecar.token:
            known["Authorization"] = f"Bearer {self._sidecar.token}"
        try:
            answer = exchange.run(method, path, known | dict(headers), body)
        except TlsRefused as error:
            raise SidecarUnusable(
                f"{self._where}: TLS failed ({error}); check sidecar.tls, tls_ca, tls_cert and "
                "tls_key"
            ) from error
        except OSError as error:
            raise SidecarNotReached(
                f"{self._where} does not answer ({words(error)}){self._advice(error)}"
            ) from error
        self._has_answered = True
        return answer

    def _advice(self, error: OSError) -> str:
        """Return what else to say about a connection that broke."""
        is_closed = isinstance(error, NoHttp | ConnectionResetError)
        if not is_closed or self._has_answered or self._server.tls is not None:
            return ""
        return "; does it want TLS (sidecar.tls)?"

    def _check(self) -> None:
        if self._is_aborted.is_set():
            raise SidecarNotReached(f"{self._where}: the import was given up")

    def _sleep(self, pause_s: float) -> None:
        self._is_aborted.wait(pause_s)
        self._check()

    def _refused(self, what: str, answer: Answer) -> SidecarRefused:
        """Return the error for an answer; `what`: what the Sidecar did not do."""
        said = f"{answer.status} {_said(answer)}".rstrip()
        advice = _ADVICE.get(answer.status, "")
        if answer.status == _TIMED_OUT:
            smaller = f"make SSTables smaller with {job_option('sstable-size')}"
            advice = f"give its sidecar.request_timeout more time, or {smaller}"
        return SidecarRefused(f"{self._where} {what}: {said}{'; ' if advice else ''}{advice}")


def _quoted(name: str) -> str:
    """Return a keyspace's or table's name as a part of a path; in quotes if CQL needs them."""
    return quote(name if _PLAIN_NAME.fullmatch(name) else f'"{name}"', safe="")


def _field(answer: Answer, name: str) -> Any:
    """Return a field of an answer in JSON; None if there is none."""
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return found.get(name) if isinstance(found, dict) else None


def _said(answer: Answer) -> str:
    """Return what an answer says, as the end of a sentence."""
    text = _field(answer, "message") or _field(answer, "status") or answer.reason
    return " ".join(str(text).split())[:_SAID_CHARACTERS].strip()
