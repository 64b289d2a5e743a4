"""Guards in front of every page of Flower, its own and ours: who is answered, and how.

- A Host header that is not ours is refused. Otherwise any web site could point its name at this
  address, and its script would read our pages as its own (DNS rebinding). An address in the header
  is accepted, since no name leads there.
- A change (POST, ...) that a page of another site sends is refused. Browsers say which site it is.
- A change is refused in read-only mode. Our handlers and Flower's have a switch each.
- A change by our pages needs the token of a page that we served (`ChangesGuarded`).
- Every answer forbids frames, foreign scripts and caches.

They hold for all handlers because they stand in the application, before a handler is chosen.
"""

from __future__ import annotations

import ipaddress
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.web import Application, OutputTransform, RequestHandler

from producer.web.exposure import Exposure

#: Methods that change nothing.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: Requests of Flower's pages that read by POST: the rows of its table of tasks.
READS_BY_POST = ("/tasks/datatable",)
#: The scripts in the markup of Flower's page of workers. All others are in files.
_INLINE_SCRIPTS = tuple(f"\nvar autorefresh = {value};\n" for value in (0, 1))
_SCRIPT_HASHES = " ".join(
    f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in _INLINE_SCRIPTS
)
#: Headers of every answer. Flower's tables set styles in markup.
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src 'self' {_SCRIPT_HASHES}; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
#: Where files are that may be cached: everybody gets equal files.
_STATIC = "/static/"


class Refusal(NamedTuple):
    """Why a request is not served."""

    status: int
    message: str


class Requested(NamedTuple):
    """What a request says about itself."""

    method: str
    path: str  #: Without Flower's prefix.
    host: str  #: The Host header.
    origin: str | None  #: The Origin header; browsers send it with every change.
    site: str | None  #: The Sec-Fetch-Site header; only browsers send it, and not to plain HTTP.


def refusal(requested: Requested, *, ours: bool, exposure: Exposure) -> Refusal | None:
    """Return why a request is refused; None if it is not. `ours`: it is for a page of ringhaul."""
    name = host_name(requested.host)
    if name is None or not _is_ours(name, exposure):
        return Refusal(
            421,
            "This page is not served under the name in the request. Use its address or localhost, "
            "or add the name to web.hosts.",
        )
    if requested.method in SAFE_METHODS:
        return None
    if _is_cross_site(requested, exposure):
        return Refusal(403, "A page of another site sent this request: nothing was changed.")
    if not ours and requested.path in READS_BY_POST:
        return None
    if exposure.read_only if ours else exposure.flower_read_only:
        setting = "web.read_only = false" if ours else "--read_only=False"
        return Refusal(
            403,
            f"This page is read-only: nothing was changed. Start it with {setting} to allow it.",
        )
    return None


def host_name(host: str) -> str | None:
    """Return the name or address in a Host header, in lower case and without its port; None if it
    has none."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _is_ours(name: str, exposure: Exposure) -> bool:
    if name.removesuffix(".") in exposure.hosts:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_cross_site(requested: Requested, exposure: Exposure) -> bool:
    """Return whether a page of another site sent the request. A program that is no browser sends
    neither header, and cannot be made to send a request by a web page."""
    if requested.site is not None:
        return requested.site not in ("same-origin", "none")
    if requested.origin is None:
        return False
    try:
        origin = urlsplit(requested.origin)
    except ValueError:
        return True
    if origin.netloc.lower() == requested.host.lower():
        return False
    # A proxy may serve this site under one of the configured names and put another one into Host.
    # The same name with another port is another site.
    return origin.hostname not in exposure.proxied or origin.hostname == host_name(requested.host)


class ChangesGuarded(RequestHandler):
    """Base of our handlers: each change needs the token of a page that we served.

    Put it before Flower's own base class, which checks the token only with OAuth. A form has the
    token by `xsrf_form_html()`, a script sends it as X-XSRFToken.
    """

    def check_xsrf_cookie(self) -> None:
        """Raise `HTTPError` 403 unless the token of form or header equals the cookie's."""
        RequestHandler.check_xsrf_cookie(self)


class Refused(RequestHandler):
    """Answers a request that is refused, whatever its method."""

    def initialize(self, refused: Refusal) -> None:
        """Take what to answer."""
        self._refused = refused

    def check_xsrf_cookie(self) -> None:
        """Check nothing: the request is refused anyway, and this says why."""

    def prepare(self) -> None:
        """Answer, before any method is called."""
        self.set_status(self._refused.status)
        self.set_header("Content-Type", "text/plain; charset=UTF-8")
        self.finish(f"{self._refused.message}\n")


class SafeHeaders(OutputTransform):
    """Adds `HEADERS` to every answer, also to errors and files; caches keep files only."""

    def __init__(self, request: HTTPServerRequest) -> None:
        """Take the request that is answered."""
        self._static = _STATIC in request.path

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        """Return the answer's head with our headers, which replace headers of the same name."""
        for name, value in HEADERS.items():
            headers[name] = value
        if not self._static or status_code >= 400:
            headers["Cache-Control"] = "no-store"
        return status_code, headers, chunk


class Guarded(Application):
    """A Tornado application that serves only what `refusal` lets pass. To be mixed into Flower's,
    which has `options`."""

    exposure: Exposure
    _prefix: str

    def guard(self, exposure: Exposure, prefix: str | None) -> None:
        """Start to guard. `prefix`: prefix of all paths, Flower's `url_prefix`."""
        self.exposure = exposure
        self._prefix = f"/{prefix.strip('/')}" if prefix else ""
        self.add_transform(SafeHeaders)

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> Any:
        """Return the handler that serves or refuses a request."""
        found = super().find_handler(request, **kwargs)
        requested = Requested(
            method=request.method or "",
            path=request.path.removeprefix(self._prefix),
            host=request.headers.get("Host", ""),
            origin=request.headers.get("Origin"),
            site=request.headers.get("Sec-Fetch-Site"),
        )
        ours = issubclass(found.handler_class, ChangesGuarded)
        refused = refusal(requested, ours=ours, exposure=self.exposure)
        if refused is None:
            return found
        return self.get_handler_delegate(request, Refused, {"refused": refused})
