"""A file that is written whole or not at all: what stood there before stays until then."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ringhaul.errors import OutputUnusable, UsageError


@contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """Write to a file beside `path`, which takes its place when the block ends without an error.

    A device or a pipe is written as it is. Raises `UsageError` where nothing can be written (no
    such folder), and `OutputUnusable` where it ends early (disk full).
    """
    straight = os.path.exists(path) and not os.path.isfile(path)
    target = Path(path if straight else os.path.realpath(path))  # a link stays one
    written = target if straight else target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        out = written.open("wb")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    try:
        with out:
            if target.is_file():
                shutil.copymode(target, written)
            yield out
        if not straight:
            written.replace(target)
    except OSError as error:
        raise OutputUnusable(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        if not straight:
            written.unlink(missing_ok=True)
