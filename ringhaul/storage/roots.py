"""Check whether a path or a URL lies below what a host allows its processes to open.

A job names what its workers open, and anyone with access to Redis can create a job. So a host may
restrict jobs to certain folders and URLs. Links are followed before a path is compared.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from ringhaul.errors import UsageError

#: Two names of one kind of store.
_SAME_SCHEME = {"s3a": "s3", "gcs": "gs"}
_PORTS = {"http": ":80", "https": ":443"}


class OutsideRoots(UsageError):
    """A path or a URL that this host does not open for jobs."""


def check_roots(name: str, roots: Sequence[str]) -> None:
    """Raise `OutsideRoots` unless `name`, a path or a URL, lies below one of `roots`.

    `roots`: absolute folders, and URL prefixes that end at the end of a part of the path. An empty
    list allows everything.
    """
    if not roots or any(_is_below(name, root) for root in roots):
        return
    raise OutsideRoots(
        f"{name}: on host {os.uname().nodename} jobs may open nothing outside of "
        f"{', '.join(roots)} (storage.allowed_roots)"
    )


def check_opened(descriptor: int, name: str, roots: Sequence[str]) -> None:
    """Check a file that is open as well: a link may have changed since its path was checked.

    If the system does not show which file a descriptor means, the check of the path must suffice.
    """
    if not roots:
        return
    try:
        opened = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return
    if opened.startswith("/") and not any(_is_below(opened, root) for root in roots):
        check_roots(opened, roots)


def _is_below(name: str, root: str) -> bool:
    parts, wanted = _parts(name), _parts(root)
    return bool(parts and wanted) and parts[: len(wanted)] == wanted


def _parts(name: str) -> list[str]:
    """Return the scheme and authority, or an empty text for a path of this host, and the parts of
    the path. Empty for a name that could mean another place than it seems to."""
    scheme, mark, rest = name.partition("://")
    if not mark:
        return ["", *_folders(os.path.realpath(name))]
    scheme = _SAME_SCHEME.get(scheme.lower(), scheme.lower())
    if scheme == "file":
        # Some readers take these for the beginning of a query, others for a part of the name.
        if set("?#") & set(rest):
            return []
        return ["", *_folders(os.path.realpath(unquote(urlsplit(name).path)))]
    authority, _, path = rest.partition("/")
    decoded = path  # the key of an object is taken literally
    if scheme in _PORTS:
        path = re.split(r"[?#]", path)[0]
        decoded = unquote(path)
    if "@" in authority or "\\" in decoded or decoded.count("/") != path.count("/"):
        return []
    folders = _folders(decoded)
    if "." in folders or ".." in folders:
        return []
    authority = authority.lower().removesuffix(_PORTS.get(scheme, ":"))
    return [f"{scheme}://", *([authority] if authority else []), *folders]


def _folders(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
