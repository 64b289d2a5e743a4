"""Which URLs this process may open, and how: from its own settings, never from a job.

A worker opens what jobs name, with the rights of its own host. So its operator decides what it may
open, once, before anything is opened.
"""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, urlsplit

from ringhaul.errors import UsageError
from ringhaul.storage.roots import check_opened, check_roots

#: Read and written through fsspec, except `http` and `https`, which ringhaul reads itself.
SCHEMES = ("s3", "s3a", "gs", "gcs", "http", "https", "file")
WEB_SCHEMES = ("http", "https")
#: Schemes of stores that show a file once its upload is complete, and rename only by copying.
OBJECT_STORES = frozenset(
    ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "oss", "b2")
)
#: Query fields that make a URL a key: anyone who sees it may read what it names.
_KEYS = frozenset(
    (
        "x-amz-signature",
        "x-amz-security-token",
        "x-goog-signature",
        "signature",
        "sig",
        "token",
        "access_token",
        "api_key",
        "apikey",
        "password",
    )
)


@dataclass(frozen=True, kw_only=True)
class Access:
    """What may be opened behind URLs."""

    schemes: tuple[str, ...] = SCHEMES
    #: Endpoint of a store that speaks S3 but is not Amazon's; empty: the AWS configuration's.
    s3_endpoint_url: str = ""
    #: Whether `http` and `https` may name loopback and private addresses. Link-local addresses,
    #: where clouds hand out a host's own credentials, are never allowed.
    private_addresses: bool = False
    #: Folders and URL prefixes outside of which nothing is opened for jobs; empty: no limit.
    allowed_roots: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed_roots", tuple(self.allowed_roots))  # JSON has lists


_access = Access()


def set_access(access: Access) -> None:
    """Set the access of this process, and of processes forked from it."""
    global _access
    _access = access


def access() -> Access:
    """Return the access that was set for this process; before that, the defaults."""
    return _access


def is_url(path: str) -> bool:
    """Return whether a source or an output is a URL and not a path."""
    return "://" in path


def scheme_of(url: str) -> str:
    """Return the scheme of a URL, `s3` for `s3://bucket/key`, in lower case."""
    return url.partition("://")[0].lower()


def split_url(url: str) -> SplitResult:
    """Return the parts of a URL. Raises `UsageError` for a host that no URL can have."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise UsageError(f"{mask_url(url)}: is not a URL: {error}") from error
    if re.search(r"[\s\x00-\x1f\x7f]", parts.netloc):
        raise UsageError(f"{mask_url(url)}: is not a URL: its host has a blank in it")
    return parts


def check_place(name: str) -> None:
    """Raise `OutsideRoots` for a path or a URL that this process must not open for jobs."""
    check_roots(name, _access.allowed_roots)


def check_file(descriptor: int, path: str) -> None:
    """Raise `OutsideRoots` for an open file that this process must not use for jobs."""
    check_opened(descriptor, path, _access.allowed_roots)


def check_url(url: str) -> None:
    """Raise `UsageError` for a URL that this process must not open, that holds a secret, is
    malformed, or names no bucket although its scheme has buckets."""
    scheme = scheme_of(url)
    allowed = _access.schemes
    if scheme not in allowed:
        raise UsageError(
            f"{mask_url(url)}: {scheme}:// is not among the kinds of URL that may be opened "
            f"({', '.join(allowed)}): see storage.schemes, on every host"
        )
    if scheme not in WEB_SCHEMES:
        # `container@account` is how Azure's stores are named. A password comes after a colon, and
        # may hold a slash, as secret keys of Amazon do. `:` and `@` in an object's name count as
        # credentials only if the bucket has a colon, which no bucket may.
        before = url.partition("://")[2].rpartition("@")[0]
        if ":" in before.partition("/")[0]:
            raise UsageError(
                f"{mask_url(url)}: credentials do not belong in a URL, which is kept with the job: "
                "workers use those of their own host (environment, profile, instance role)"
            )
        bucket = url.partition("://")[2].partition("/")[0]
        if scheme in OBJECT_STORES and (not bucket.strip() or glob.has_magic(bucket)):
            what = "a bucket's name cannot be a pattern" if bucket.strip() else "names no bucket"
            raise UsageError(f"{mask_url(url)}: {what}; give {scheme}://BUCKET/PATH")
        return
    parts = split_url(url)
    secret = parts.username is not None or any(
        name.lower() in _KEYS for name, _ in parse_qsl(parts.query, keep_blank_values=True)
    )
    if secret:
        raise UsageError(
            f"{mask_url(url)}: the URL holds a secret, and would be kept with the job, in reports "
            "and in logs; name an object by s3:// or gs:// instead, or pipe it in (curl URL | "
            "ringhaul load - ...)"
        )


def mask_url(url: str) -> str:
    """Return a URL that is safe to show: without credentials and the values of a query."""
    scheme, found, rest = url.partition("://")
    if not found:
        return url
    if scheme.lower() in WEB_SCHEMES:
        rest, query, _ = rest.partition("?")
        authority, slash, path = rest.partition("/")
        return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}{query and '?...'}"
    authority, slash, path = rest.partition("/")
    if ":" in authority and "@" not in authority:  # a secret with a slash: see `check_url`
        return f"{scheme}://{rest.rpartition('@')[2]}"
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def same_version(one: str, other: str) -> bool:
    """Return whether two version texts stand for one version of a file.

    An ETag may be weak in one answer of a server and not in the next, for example behind a cache
    that compresses for others.
    """
    return one.removeprefix("W/") == other.removeprefix("W/")
