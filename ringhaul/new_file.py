"""Create files safely under predictable names in folders that other users can write to.

Another user could place a link or a pipe under the name first, so that we would write into another
file or wait for ever. So such a file is always created, and an existing one is never opened.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import BinaryIO


def new_file(path: str | os.PathLike[str], *, buffer_bytes: int = -1) -> BinaryIO:
    """Create a new, empty file and open it for writing. Anything already under its name, such as a
    link or a dead process's leftover, is removed first. Raises `OSError`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o666)
    except FileExistsError:
        with suppress(FileNotFoundError):
            os.unlink(path)
        descriptor = os.open(path, flags, 0o666)
    return os.fdopen(descriptor, "wb", buffering=buffer_bytes)
