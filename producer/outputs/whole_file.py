"""Write a file atomically: its old content stays until the new one is complete."""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ringhaul.errors import OutputUnusable, UsageError
from ringhaul.new_file import replace_file

#: The form of `/dev/fd/N` paths; on Linux `/dev/stdout` and `/dev/stderr` link to `/proc` ones.
_DESCRIPTOR = re.compile(
    r"/(?:dev|proc/(?P<process>[0-9]+)(?:/task/[0-9]+)?)/fd/(?P<number>[0-9]+)"
)
#: Maximum number of links followed, as in Linux (`MAXSYMLINKS`).
_HOPS_MAX = 40


@contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """Like `replacing`, but raise our own errors: `UsageError` if the file cannot be opened (no
    such folder), `OutputUnusable` if writing fails later (disk full)."""
    opened = False
    try:
        with replacing(path) as out:
            opened = True
            yield out
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror or error}"
        raise (OutputUnusable(message) if opened else UsageError(message)) from error


def check_replacing(path: str) -> None:
    """Raise `UsageError` if `replacing` would fail to open the file; for checks in advance."""
    descriptor = _descriptor(path)
    if descriptor is not None:
        os.close(descriptor)
        return
    target = Path(os.path.realpath(path))
    tried = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        if target.exists() and not target.is_file():
            return
        tried.open("xb").close()
        tried.unlink()
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Write to a temporary file, which replaces `path`, synced to disk, if the block succeeds.

    A device or a pipe is written directly, and so is the target of a descriptor such as
    `/dev/stdout`: a log that a shell opened with `>>` is appended to. A link stays a link. Several
    commands may write the same path at once, even on hosts with equal process ids. Raises
    `OSError`.
    """
    descriptor = _descriptor(path)
    if descriptor is not None:
        sys.stdout.flush()  # Keep the order of what was printed before.
        with os.fdopen(descriptor, "wb") as there:
            yield there
        return
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as there:
            yield there
        return
    target = Path(os.path.realpath(path))
    mode = stat.S_IMODE(target.stat().st_mode) if target.is_file() else None
    with replace_file(target, mode=mode) as out:
        yield out


def _descriptor(path: str) -> int | None:
    """Return a duplicate of the descriptor that a path names; None if it names none.

    Opening such a path would start again at the first byte. The links are followed one by one,
    because the last may lead to a file with an ordinary name.
    """
    for _ in range(_HOPS_MAX):
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        named = _DESCRIPTOR.fullmatch(path)
        if named is not None:
            if named["process"] in (None, str(os.getpid())):
                return os.dup(int(named["number"]))
            return os.open(path, os.O_WRONLY | os.O_APPEND)  # such as a container's first process
        if not os.path.islink(path):
            return None
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return None
