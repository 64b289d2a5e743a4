"""Names of inputs that can be read once only, and by one process: standard input, descriptors of
the command, as in `<(...)` of a shell, and pipes with a name."""

from __future__ import annotations

import os
import re
import stat

from ringhaul.storage.access import is_url, scheme_of
from ringhaul.storage.folders import local_path

_STANDARD = re.compile(r"/dev/stdin|(?:/dev|/proc/(?:thread-)?self)/fd/0")
_DESCRIPTOR = re.compile(r"(?:/dev|/proc/(?:(?:thread-)?self|[0-9]+))/fd/[0-9]+")


def is_standard_input(name: str) -> bool:
    """Return whether an input is standard input, by any of its names."""
    return name == "-" or _STANDARD.fullmatch(stream_path(name)) is not None


def is_stream(name: str) -> bool:
    """Return whether an input can be read once only."""
    path = stream_path(name)
    if name == "-" or _STANDARD.fullmatch(path) or _DESCRIPTOR.fullmatch(path):
        return True
    try:
        mode = os.stat(path).st_mode if path else 0
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def stream_path(name: str) -> str:
    """Return the absolute path of an input on this host; empty for a URL of something else."""
    if is_url(name) and scheme_of(name) != "file":
        return ""
    path = os.path.abspath(local_path(name) or "")
    return path[1:] if path.startswith("//") else path
