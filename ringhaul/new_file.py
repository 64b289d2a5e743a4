"""Files under names that others can foresee, in folders that others can write.

Whoever can put a link or a pipe there before us would have us write into another file, or wait for
ever. So such a file is made, and never opened.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import BinaryIO


def new_file(path: str | os.PathLike[str], *, buffer_bytes: int = -1) -> BinaryIO:
    """Make an empty file that was not there, and open it to be written. What stood under its name
    is removed: what a process left that died, or a link. Raises `OSError`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o666)
    except FileExistsError:
        with suppress(FileNotFoundError):
            os.unlink(path)
        descriptor = os.open(path, flags, 0o666)
    return os.fdopen(descriptor, "wb", buffering=buffer_bytes)
