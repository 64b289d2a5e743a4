"""Where Bulk Loader reads and writes, as ringhaul names it. Pure."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from producer.translate.translation import Draft

_STANDARD = ("-", "std:/", "stdin:/", "stdout:/")
_BRACES = re.compile(r"\{([^{}]*)\}")
#: More than a pattern with braces stands for.
_PATTERNS_MAX = 100


def local_path(url: str, draft: Draft) -> str:
    """Return a path for a URL of a file; other URLs as they are, `-` for the standard streams."""
    if url in _STANDARD:
        return "-"
    if url.startswith("file:"):
        path = unquote(url.removeprefix("file:"))
        return re.sub("^//+", "/", path)
    if url.startswith("s3:") and "?" in url:
        draft.note("region and credentials are those of the host, not of the URL")
        return url.partition("?")[0]
    # The shell does not expand it in quotes, and neither does ringhaul.
    return os.path.expanduser(url) if url == "~" or url.startswith("~/") else url


def patterns(folder: str, wanted: str, *, everywhere: bool) -> list[str]:
    """Return the globs of the files in a folder that match `wanted`, a glob of Java."""
    if not everywhere:
        wanted = wanted.rpartition("/")[2]
    base = "/" if not folder.rstrip("/") else f"{folder.rstrip('/')}/"
    return [f"{base}{one}" for one in _without_braces(wanted)]


def _without_braces(pattern: str) -> list[str]:
    """Return a glob for each of the words in braces, which Python's globs do not have."""
    done: list[str] = []
    open_ = [pattern]
    while open_ and len(done) + len(open_) < _PATTERNS_MAX:
        one = open_.pop(0)
        found = _BRACES.search(one)
        if found is None:
            done.append(one)
            continue
        before, after = one[: found.start()], one[found.end() :]
        open_ = [f"{before}{word}{after}" for word in found[1].split(",")] + open_
    return done + open_
