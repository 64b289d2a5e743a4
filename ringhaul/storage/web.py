"""Read files of web servers by ranges. Nothing is written there.

Every connection, also after a redirection, is made to an address that was checked first: a name
cannot point elsewhere between the check and the connection.
"""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from ringhaul.errors import (
    RinghaulError,
    SourceChanged,
    SourceMissing,
    SourceUnavailable,
    UsageError,
)
from ringhaul.storage.access import (
    access,
    check_place,
    check_url,
    mask_url,
    same_version,
    scheme_of,
    split_url,
)
from ringhaul.storage.addresses import refusal
from ringhaul.web_client import get, open_connection, split

CONNECT_TIMEOUT_S = 5.0
#: Time without any data, not for a complete answer.
READ_TIMEOUT_S = 20.0
REDIRECTIONS_MAX = 5
#: Transient errors are retried after these pauses; then the unit is given back.
_PAUSES_S = (0.2, 1.0)

_TOTAL = re.compile(r"bytes (?:\*|\d+-\d+)/(\d+)")
_PART = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_MOVED = (301, 302, 303, 307, 308)
_PASSING = (408, 425, 429, 500, 502, 503, 504)


class WebFile(NamedTuple):
    """What a server says about a file."""

    url: str
    size_bytes: int
    #: ETag, else the time of its last change; empty if the server sends neither.
    version: str
    #: Whether the server serves parts of it.
    ranges: bool


@dataclass(frozen=True)
class _Answer:
    response: http.client.HTTPResponse
    connection: http.client.HTTPConnection
    url: str  #: URL that answered, after redirections

    @property
    def version(self) -> str:
        headers = self.response.headers
        return headers.get("ETag") or headers.get("Last-Modified") or ""


def stat_web(url: str) -> WebFile:
    """Request the first byte: the answer shows the size, and whether ranges are supported.

    Raises `SourceMissing` (no such file, refused address, unknown size), `SourceUnavailable`.
    """
    answer = _ask(url, {"Range": "bytes=0-0"})
    try:
        response = answer.response
        total = _TOTAL.fullmatch(response.headers.get("Content-Range", ""))
        if response.status in (206, 416) and total:
            return WebFile(url, int(total[1]), answer.version, ranges=True)
        length = response.headers.get("Content-Length", "")
        if response.status != 200 or not length.isdigit():
            raise SourceMissing(
                f"{mask_url(url)}: the server does not say how large the file is; pipe it in "
                "(curl URL | ringhaul load - ...)"
            )
        return WebFile(url, int(length), answer.version, ranges=False)
    finally:
        answer.connection.close()


class WebRanges:
    """Reads parts of a file, over connections that are kept while it is open."""

    def __init__(self, file: WebFile) -> None:
        self._file = file
        self._idle: list[_Answer] = []

    def fetch(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end), which are in the file. Threads may call it concurrently.

        Raises `SourceChanged`, `SourceMissing` and `SourceUnavailable`.
        """
        for pause_s in (*_PAUSES_S, None):
            try:
                return self._fetch(start, end)
            except SourceUnavailable:
                if pause_s is None:
                    raise
                time.sleep(pause_s)
        raise AssertionError("the last try returns or raises")

    def _fetch(self, start: int, end: int) -> bytes:
        url = self._file.url
        fields = {"Range": f"bytes={start}-{end - 1}"}
        answer = self._again(fields) or _ask(url, fields)
        whole = False
        try:
            if not same_version(answer.version, self._file.version):
                raise _changed(url)
            if answer.response.status == 200:  # such as from a cache that does not hold it yet
                raise SourceUnavailable(
                    f"{mask_url(url)}: the server no longer serves parts of the file; "
                    "if that persists, download the file first"
                )
            if answer.response.status != 206:
                raise _changed(url)
            _check_part(self._file, answer.response, start, end)
            data = answer.response.read()
            whole = len(data) == end - start
        except (OSError, http.client.HTTPException) as error:
            raise SourceUnavailable(f"{mask_url(url)}: the answer broke off: {error}") from error
        finally:
            if whole and not answer.response.will_close:
                self._idle.append(answer)
            else:
                answer.connection.close()
        if not whole:
            raise SourceUnavailable(f"{mask_url(url)}: the answer is shorter than it should be")
        return data

    def _again(self, fields: Mapping[str, str]) -> _Answer | None:
        """Send a request on the open connection; None if none is open, or the server closed it."""
        while True:
            try:
                before = self._idle.pop()
            except IndexError:
                return None
            try:
                response = get(before.connection, split(before.url), fields)
            except (OSError, http.client.HTTPException):
                before.connection.close()
                continue
            if response.status in (200, 206):
                return _Answer(response, before.connection, before.url)
            before.connection.close()  # requested again from its beginning, with redirections

    def close(self) -> None:
        for answer in self._idle:
            answer.connection.close()


class WebStream:
    """Reads a complete file by one request, which is resumed if it breaks off."""

    def __init__(self, file: WebFile) -> None:
        self._file = file
        self._at = 0
        self._answer: _Answer | None = None

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none only at the end.

        Raises `SourceChanged`, `SourceMissing` and `SourceUnavailable`.
        """
        left = min(size, self._file.size_bytes - self._at)
        if left <= 0:
            return b""
        for pause_s in (*_PAUSES_S, None):
            try:
                data = self._read(left)
                self._at += len(data)
                return data
            except SourceUnavailable:
                self.close()
                if pause_s is None:
                    raise
                time.sleep(pause_s)
        raise AssertionError("the last try returns or raises")

    def _read(self, size: int) -> bytes:
        url = mask_url(self._file.url)
        answer = self._answer = self._answer or self._begin()
        try:
            data = answer.response.read(size)
        except (OSError, http.client.HTTPException) as error:
            raise SourceUnavailable(f"{url}: the answer broke off: {error}") from error
        if not data:
            missing = self._file.size_bytes - self._at
            raise SourceUnavailable(f"{url}: the answer broke off, {missing:,} bytes are missing")
        return data

    def _begin(self) -> _Answer:
        """Request what was not read yet."""
        answer = _ask(self._file.url, {"Range": f"bytes={self._at}-"} if self._at else {})
        length = answer.response.headers.get("Content-Length", "")
        other_size = length.isdigit() and int(length) != self._file.size_bytes - self._at
        if not same_version(answer.version, self._file.version) or (not self._at and other_size):
            answer.connection.close()
            raise _changed(self._file.url)
        if self._at and answer.response.status != 206:
            answer.connection.close()
            raise SourceUnavailable(
                f"{mask_url(self._file.url)}: the answer broke off, and the server serves no parts"
            )
        if answer.response.status == 206:
            try:
                _check_part(self._file, answer.response, self._at, None)
            except RinghaulError:
                answer.connection.close()
                raise
        return answer

    def close(self) -> None:
        if self._answer is not None:
            self._answer.connection.close()
            self._answer = None


def _check_part(
    file: WebFile, response: http.client.HTTPResponse, start: int, end: int | None
) -> None:
    """Raise if a part is not [start, end) of the file; None: it may end anywhere.

    A cache that mixes up its parts answers with the right length and the right ETag.
    """
    content_range = response.headers.get("Content-Range", "")
    part = _PART.fullmatch(content_range)
    if part and part[3] not in ("*", str(file.size_bytes)):
        raise _changed(file.url)
    if not part or int(part[1]) != start or (end is not None and int(part[2]) != end - 1):
        wanted = f"{start}-{'' if end is None else end - 1}"
        raise SourceUnavailable(
            f"{mask_url(file.url)}: bytes {wanted} were requested, and the server sends "
            f"{content_range or 'a part without its position'}; "
            "if that persists, download the file first"
        )


def _ask(url: str, fields: Mapping[str, str]) -> _Answer:
    """Return the answer to a GET, after redirections: 200, 206 or 416. Its body is not read."""
    requested = url
    for _ in range(REDIRECTIONS_MAX + 1):
        parts = _split(url)
        connection = open_connection(parts, _connected)
        try:
            response = get(connection, parts, fields)
        except _AddressRefused as error:
            raise SourceMissing(f"{mask_url(requested)}: {error}") from error
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise _no_answer(requested, error) from error
        if response.status in (200, 206, 416):
            try:
                _check_encoding(requested, response)
            except SourceMissing:
                connection.close()
                raise
            return _Answer(response, connection, url)
        location = response.headers.get("Location", "")
        connection.close()
        if response.status not in _MOVED or not location:
            raise _refused(requested, response)
        url = _next(requested, url, location)
    raise SourceMissing(f"{mask_url(requested)}: is redirected more than {REDIRECTIONS_MAX} times")


#: Encodings that servers name for a compressed file -> the suffix of such a file. Others, such as
#: `utf-8` or `aws-chunked`, are named by mistake: the bytes are the file's.
_STORED: Mapping[str, str | None] = {
    "gzip": ".gz",
    "x-gzip": ".gz",
    "zstd": ".zst",
    "x-bzip2": ".bz2",
    "bzip2": ".bz2",
    "x-xz": ".xz",
    "xz": ".xz",
    **dict.fromkeys(("deflate", "compress", "br")),
}


def _check_encoding(url: str, response: http.client.HTTPResponse) -> None:
    """Raise if a file was compressed in transit although it was requested as stored."""
    said = response.headers.get("Content-Encoding", "").lower().split(",")
    for encoding in filter(_STORED.__contains__, map(str.strip, said)):
        suffix = _STORED[encoding]
        # Many servers also name the encoding of a file that is stored compressed: see its suffix.
        if suffix is not None and urlsplit(url).path.lower().endswith(suffix):
            continue
        raise SourceMissing(
            f"{mask_url(url)}: the server sends the file compressed ({encoding}) although it was "
            "requested as stored (Accept-Encoding: identity); turn that off at the server, or pipe "
            "it in (curl --compressed URL | ringhaul load - ...)"
        )


def _next(requested: str, url: str, location: str) -> str:
    """Return where a redirection leads, if it may be followed."""
    with suppress(UnicodeError):  # servers send UTF-8, which is read as Latin-1
        location = location.encode("latin-1").decode()
    try:
        target = urljoin(url, location)
        split_url(target)
    except (ValueError, UsageError) as error:
        raise SourceMissing(f"{mask_url(requested)}: is redirected wrongly: {error}") from error
    scheme = scheme_of(target)
    # `check_url` alone would let a page send a worker to s3:// or file://.
    if scheme not in ("http", "https") or (scheme_of(url) == "https" and scheme == "http"):
        raise SourceMissing(
            f"{mask_url(requested)}: is redirected to {scheme}://, which is not followed"
        )
    if scheme not in access().schemes:
        check_url(target)
    check_place(target)
    return target


def _split(url: str) -> SplitResult:
    try:
        return split(url)
    except http.client.InvalidURL as error:
        raise SourceMissing(f"{mask_url(url)}: {error}") from error


class _AddressRefused(Exception):
    """All addresses of a host are refused."""


def _connected(host: str, port: int) -> socket.socket:
    """Connect to the first address of `host` that is allowed and answers."""
    problem: Exception | None = None
    private = access().private_addresses
    for family, kind, protocol, _, where in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM):
        why = refusal(str(where[0]), private=private)
        if why is not None:
            problem = problem or _AddressRefused(f"{host}: its address {where[0]} {why}")
            continue
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(CONNECT_TIMEOUT_S)
            connection.connect(where)
            connection.settimeout(READ_TIMEOUT_S)
        except OSError as error:
            connection.close()
            problem = error
            continue
        return connection
    raise problem or OSError(f"{host} has no address")


def _changed(url: str) -> SourceChanged:
    return SourceChanged(
        f"{mask_url(url)}: the file is not the one that the job started with; "
        "start again once nothing changes it"
    )


def _no_answer(url: str, error: Exception) -> RinghaulError:
    """Return the error for a request without an answer."""
    host = urlsplit(url).hostname
    if isinstance(error, socket.gaierror):
        return SourceUnavailable(f"{mask_url(url)}: the name {host} does not resolve: is it right?")
    if isinstance(error, ssl.SSLCertVerificationError):
        return SourceMissing(
            f"{mask_url(url)}: the certificate of {host} is not trusted: {error.verify_message}; "
            "SSL_CERT_FILE can name the authority that signed it"
        )
    if isinstance(error, ssl.SSLError):
        return SourceUnavailable(f"{mask_url(url)}: no TLS connection to {host}: {error.reason}")
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return SourceUnavailable(f"{mask_url(url)}: {host} does not answer: {reason}")


def _refused(url: str, response: http.client.HTTPResponse) -> RinghaulError:
    status = f"{response.status} {response.reason}".strip()
    if response.status in _PASSING:
        return SourceUnavailable(f"{mask_url(url)}: the server is not available now: {status}")
    if response.status in (404, 410):
        return SourceMissing(f"{mask_url(url)}: no such file on the server ({status})")
    if response.status in (401, 403):
        return SourceMissing(f"{mask_url(url)}: the server refuses access ({status})")
    return SourceMissing(f"{mask_url(url)}: the server answers {status}")
