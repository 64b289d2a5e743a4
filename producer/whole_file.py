"""A file that is written whole or not at all: what stood there before stays until then."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ringhaul.errors import OutputUnusable, UsageError
from ringhaul.read.folders import sync_folder


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


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Write to a file beside `path`, which takes its place, and is on disk, when the block ends
    without an error.

    A device or a pipe is written as it is, and a link stays one. Several commands may write the
    same at once, on hosts whose processes have the same numbers. Raises `OSError`.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as there:
            yield there
        return
    target = Path(os.path.realpath(path))
    written = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with written.open("wb") as out:
            if target.is_file():
                shutil.copymode(target, written)
            yield out
            out.flush()
            os.fsync(out.fileno())
        written.replace(target)
        sync_folder(str(target.parent))
    finally:
        written.unlink(missing_ok=True)
