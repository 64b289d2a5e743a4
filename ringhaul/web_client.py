"""The client of web servers: whole exchanges with time limits, and single requests for `storage`.

An exchange has one limit for all of its time, and reads a bounded part of the answer. It follows no
redirection: what it sends goes only to the address that was configured.
"""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

#: Connects to a host and port. It sets the time limits of the socket.
Dial = Callable[[str, int], socket.socket]

#: How much is read of an answer of which only the status counts, unless another bound is given.
ANSWER_BYTES = 4096

#: All characters that a URL may contain unquoted, `%` among them: it is quoted already.
_AS_IT_IS = "%/:=&?~#+!$,;'@()*[]"
_PORTS = {"http": 80, "https": 443}


class Answer(NamedTuple):
    """The answer to an exchange."""

    status: int
    reason: str
    body: bytes  #: its beginning, up to the limit that was asked for


class _Proxy(NamedTuple):
    secure: bool
    host: str
    port: int | None
    headers: Mapping[str, str]  #: they may hold a password


def exchange(
    method: str,
    url: str,
    *,
    timeout_s: float,
    body_bytes_max: int = ANSWER_BYTES,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    context: ssl.SSLContext | None = None,
    by_proxy: bool = False,
) -> Answer:
    """Send a request and return its answer, of whatever status, within `timeout_s`.

    `context`: TLS settings that replace the usual authorities. `by_proxy`: whether to go by way of
    the proxy that the environment names for scheme and host (`https_proxy`, `no_proxy`), if any.

    Raises `TimeoutError`, other `OSError`s and `http.client.HTTPException`; none quotes a header.
    """
    parts = split(url)
    proxy = _proxy_for(parts) if by_proxy else None
    connection = _connection(parts, proxy, timeout_s=timeout_s, context=context)
    fields = {"User-Agent": "ringhaul", "Connection": "close", **(headers or {})}
    target = target_of(parts)
    if proxy is not None and parts.scheme == "http":
        target = f"http://{parts.netloc.rpartition('@')[2]}{target}"
        fields |= proxy.headers
    # A time limit of a socket is for one read; a server that sends byte by byte never meets it.
    expired = threading.Event()
    watchdog = threading.Timer(timeout_s, _expire, (connection, expired))
    watchdog.daemon = True
    watchdog.start()
    try:
        connection.connect()
        _check_time(expired, timeout_s)  # it may have ended before there was a socket to shut down
        connection.request(method, target, body, fields)
        response = connection.getresponse()
        answer = Answer(response.status, response.reason, response.read(body_bytes_max))
        _check_time(expired, timeout_s)
        return answer
    except (OSError, http.client.HTTPException) as error:
        _check_time(expired, timeout_s, error)
        raise
    finally:
        watchdog.cancel()
        connection.close()


def split(url: str) -> SplitResult:
    """Return the parts of a URL. Raises `http.client.InvalidURL` if it names no host or port."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise http.client.InvalidURL(f"is not a URL: {error}") from error
    if not host:
        raise http.client.InvalidURL("names no host")
    return parts


def target_of(parts: SplitResult) -> str:
    """Return path and query as a request names them."""
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return quote(target, safe=_AS_IT_IS)


def open_connection(parts: SplitResult, dial: Dial) -> http.client.HTTPConnection:
    """Return a connection, which `dial` makes at the first request. TLS trusts the usual
    authorities, and expects a certificate for the host of the URL."""
    host = str(parts.hostname)
    if parts.scheme == "https":
        return _Secure(host, parts.port, dial, context=ssl.create_default_context())
    return _Plain(host, parts.port, dial)


def get(
    connection: http.client.HTTPConnection, parts: SplitResult, headers: Mapping[str, str]
) -> http.client.HTTPResponse:
    """Send a GET and return the response; its body is not read. It is requested as it is stored:
    compression in transit changes sizes and positions."""
    fields = {"Accept-Encoding": "identity", "User-Agent": "ringhaul", **headers}
    connection.request("GET", target_of(parts), headers=fields)
    return connection.getresponse()


class _Plain(http.client.HTTPConnection):
    def __init__(self, host: str, port: int | None, dial: Dial) -> None:
        super().__init__(host, port or _PORTS["http"])
        self._dial = dial

    def connect(self) -> None:
        self.sock = self._dial(self.host, self.port)


class _Secure(http.client.HTTPSConnection):
    def __init__(self, host: str, port: int | None, dial: Dial, *, context: ssl.SSLContext) -> None:
        super().__init__(host, port or _PORTS["https"], context=context)
        self._dial, self._verified = dial, context

    def connect(self) -> None:
        plain = self._dial(self.host, self.port)
        self.sock = self._verified.wrap_socket(plain, server_hostname=self.host)


def _connection(
    parts: SplitResult, proxy: _Proxy | None, *, timeout_s: float, context: ssl.SSLContext | None
) -> http.client.HTTPConnection:
    host, port = str(parts.hostname), parts.port
    first_host, first_port = (host, port) if proxy is None else (proxy.host, proxy.port)
    if parts.scheme != "https" and (proxy is None or not proxy.secure):
        return http.client.HTTPConnection(first_host, first_port, timeout=timeout_s)
    connection = http.client.HTTPSConnection(
        first_host, first_port, timeout=timeout_s, context=context
    )
    if proxy is not None and parts.scheme == "https":
        connection.set_tunnel(host, port or _PORTS["https"], dict(proxy.headers))
    return connection


def _proxy_for(parts: SplitResult) -> _Proxy | None:
    from urllib.request import getproxies, proxy_bypass

    named = getproxies().get(parts.scheme)
    if not named or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    found = split(named if "://" in named else f"http://{named}")
    headers = {}
    if found.username is not None:
        word = f"{unquote(found.username)}:{unquote(found.password or '')}".encode()
        headers["Proxy-Authorization"] = "Basic " + base64.b64encode(word).decode("ascii")
    return _Proxy(found.scheme == "https", str(found.hostname), found.port, headers)


def _expire(connection: http.client.HTTPConnection, expired: threading.Event) -> None:
    expired.set()
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


def _check_time(expired: threading.Event, timeout_s: float, error: Exception | None = None) -> None:
    if expired.is_set():
        raise TimeoutError(f"its answer takes more than {timeout_s:g} s") from error
