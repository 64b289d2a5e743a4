"""Translate errors of stores behind URLs into plain messages.

Clients of stores raise all kinds of errors: of the system, of the store's protocol, their own
libraries. Here each is one of three kinds: refused, away, or not about the store. They are
recognised by the names of their classes, since most of their packages are not installed.
"""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

from ringhaul.errors import RinghaulError
from ringhaul.storage.access import mask_url, scheme_of

#: It does not exist, or is not permitted: a retry gives the same answer.
REFUSED = "refused"
#: It does not answer, or not now.
AWAY = "away"


class Trouble(NamedTuple):
    """Why something behind a URL cannot be used."""

    kind: str  #: REFUSED or AWAY
    text: str  #: message with the URL, and what to do


_NO_CREDENTIALS = frozenset(
    ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "DefaultCredentialsError")
)
_STALE_CREDENTIALS = frozenset(("CredentialRetrievalError", "TokenRetrievalError", "RefreshError"))
_NO_NAME = frozenset(("ClientConnectorDNSError",))
_NO_ANSWER = frozenset(
    (
        "EndpointConnectionError",
        "ConnectTimeoutError",
        "ReadTimeoutError",
        "ConnectionClosedError",
        "HTTPClientError",
        "ClientError",
        "ClientConnectionError",
        "FSTimeoutError",
    )
)
_BAD_NAME = frozenset(("ParamValidationError", "InvalidBucketName"))
#: Codes of S3's answers, which other stores share.
_NO_BUCKET = frozenset(("NoSuchBucket",))
_DENIED = frozenset(("AccessDenied", "403", "Forbidden", "AllAccessDisabled", "AccountProblem"))
_WRONG_KEY = frozenset(("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken"))
_OLD_KEY = frozenset(("ExpiredToken", "TokenRefreshRequired", "RequestTimeTooSkewed"))


@contextmanager
def store_errors(
    url: str, *, refused: type[RinghaulError], away: type[RinghaulError]
) -> Iterator[None]:
    """Raise the caller's error of the right kind, with a plain message, if `url` cannot be used.

    Errors that say nothing about the store pass unchanged, and so do ringhaul's own.
    """
    try:
        yield
    except RinghaulError:
        raise
    except Exception as error:
        problem = trouble(url, error)
        if problem is None:
            raise
        kind = away if problem.kind == AWAY else refused
        raise kind(problem.text) from error


def trouble(url: str, error: BaseException) -> Trouble | None:
    """Return what `error` means for `url`; None: it says nothing about the store."""
    chain = list(_chain(error))
    names = {base.__name__ for one in chain for base in type(one).__mro__}
    codes = {code for one in chain for code in _codes(one)}
    where, store, bucket = mask_url(url), _store(url), urlsplit(url).netloc
    if names & _NO_CREDENTIALS:
        return Trouble(
            REFUSED,
            f"{where}: no credentials for {store} were found on this host: set them for the "
            f"workers' user as {_credentials(url)}",
        )
    if names & _STALE_CREDENTIALS:
        return Trouble(REFUSED, f"{where}: the credentials for {store} cannot be renewed: {error}")
    if codes & _WRONG_KEY:
        return Trouble(REFUSED, f"{where}: {store} does not accept the credentials of this host")
    if codes & _OLD_KEY:
        return Trouble(
            REFUSED,
            f"{where}: the credentials of this host have expired, or its clock is wrong",
        )
    if codes & _NO_BUCKET:
        return Trouble(REFUSED, f"{where}: there is no bucket {bucket}")
    if codes & _DENIED or isinstance(error, PermissionError):
        return Trouble(
            REFUSED,
            f"{where}: access denied: the credentials of this host are unknown there, or do not "
            "permit it",
        )
    if any(isinstance(one, socket.gaierror) for one in chain) or names & _NO_NAME:
        return Trouble(AWAY, f"{where}: the name of {store} does not resolve{_endpoint_hint(url)}")
    if isinstance(error, FileNotFoundError):
        return Trouble(REFUSED, f"{where}: there is no such object or folder")
    if names & _BAD_NAME:
        return Trouble(REFUSED, f"{where}: {_first_line(error)}")
    if isinstance(error, OSError | TimeoutError) or names & _NO_ANSWER:
        return Trouble(
            AWAY, f"{where}: {store} is not available: {_reason(error)}{_endpoint_hint(url)}"
        )
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _codes(error: BaseException) -> Iterator[str]:
    """Yield the codes of the answer that an error was made of."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        yield str(response.get("Error", {}).get("Code", ""))
    code = getattr(error, "code", None)
    if isinstance(code, int | str):
        yield str(code)


def _store(url: str) -> str:
    scheme = scheme_of(url)
    return {"s3": "S3", "s3a": "S3", "gs": "Google Storage", "gcs": "Google Storage"}.get(
        scheme, f"the store of {scheme}://"
    )


def _credentials(url: str) -> str:
    if scheme_of(url) in ("gs", "gcs"):
        return "GOOGLE_APPLICATION_CREDENTIALS, or give the host a service account"
    return "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or give the host a role"


def _endpoint_hint(url: str) -> str:
    return "; see storage.s3_endpoint_url" if scheme_of(url) in ("s3", "s3a") else ""


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        known = errno.errorcode.get(error.errno)
        return error.strerror if known else _first_line(error)
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    """Return the first line of an error's message, without the query of a URL in it."""
    text = str(error).strip() or type(error).__name__
    return re.sub(r"\?\S*", "?...", text.splitlines()[0]).rstrip(".")
