"""A file that is written whole or not at all: what stood there before stays until then."""

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
from ringhaul.storage.folders import sync_folder

#: What `/dev/stdout`, `/dev/stderr` and `/dev/fd/N` are or, on Linux, lead to.
_DESCRIPTOR = re.compile(
    r"/(?:dev|proc/(?P<process>[0-9]+)(?:/task/[0-9]+)?)/fd/(?P<number>[0-9]+)"
)
#: Links that lead to one another, as Linux counts them (`MAXSYMLINKS`).
_HOPS_MAX = 40


@contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """`replacing`, in words: raises `UsageError` where nothing can be written (no such folder), and
    `OutputUnusable` where it ends early (disk full)."""
    opened = False
    try:
        with replacing(path) as out:
            opened = True
            yield out
    except OSError as error:
        words = f"{path}: cannot be written: {error.strerror or error}"
        raise (OutputUnusable(words) if opened else UsageError(words)) from error


def check_replacing(path: str) -> None:
    """Raise `UsageError` if `replacing` could not begin: before what is to be written is there."""
    descriptor = _descriptor(path)
    if descriptor is not None:
        os.close(descriptor)
        return
    target = Path(os.path.realpath(path))
    tried = _beside(target)
    try:
        if target.exists() and not target.is_file():
            return
        tried.open("xb").close()
        tried.unlink()
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Write to a file beside `path`, which takes its place, and is on disk, when the block ends
    without an error.

    A device or a pipe is written as it is, as is whatever a descriptor such as `/dev/stdout` stands
    for: a log that a shell opened with `>>` is added to. A link stays one. Several commands may
    write the same at once, on hosts whose processes have the same numbers. Raises `OSError`.
    """
    descriptor = _descriptor(path)
    if descriptor is not None:
        sys.stdout.flush()  # What was printed before stands before.
        with os.fdopen(descriptor, "wb") as there:
            yield there
        return
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as there:
            yield there
        return
    target = Path(os.path.realpath(path))
    written = _beside(target)
    try:
        with written.open("xb") as out:
            if target.is_file():
                os.fchmod(out.fileno(), stat.S_IMODE(target.stat().st_mode))
            yield out
            out.flush()
            os.fsync(out.fileno())
        written.replace(target)
        sync_folder(str(target.parent))
    finally:
        written.unlink(missing_ok=True)


def _beside(target: Path) -> Path:
    """A new name in the folder of `target`."""
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")


def _descriptor(path: str) -> int | None:
    """A duplicate of the open file that a path names by its descriptor; None: it names none.

    To open such a name would begin anew at the first byte. The last of the links leads to a file
    that may have a name like any other: each is looked at on the way.
    """
    for _ in range(_HOPS_MAX):
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        named = _DESCRIPTOR.fullmatch(path)
        if named is not None:
            if named["process"] in (None, str(os.getpid())):
                return os.dup(int(named["number"]))
            return os.open(path, os.O_WRONLY | os.O_APPEND)  # as of a container's first process
        if not os.path.islink(path):
            return None
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return None
