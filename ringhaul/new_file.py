"""Create and replace files safely, also in folders that other users can write to.

Another user could place a link or a pipe under a predictable name first, so that we would write
into another file or wait for ever. So such a file is always created; an existing file is never
opened.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def new_file(
    path: str | os.PathLike[str], *, buffer_bytes: int = -1, mode: int = 0o666
) -> BinaryIO:
    """Create a new, empty file and open it for writing. Anything already under its name, such as a
    link or a dead process's leftover, is removed first. `mode` is subject to the process's umask.
    Raises `OSError`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, mode)
    except FileExistsError:
        with suppress(FileNotFoundError):
            os.unlink(path)
        descriptor = os.open(path, flags, mode)
    return os.fdopen(descriptor, "wb", buffering=buffer_bytes)


@contextmanager
def replace_file(
    path: str | os.PathLike[str], *, mode: int | None = None, temporary: Path | None = None
) -> Iterator[BinaryIO]:
    """Write a new file that takes the place of `path`, on disk, if the block succeeds; readers see
    the old or the new file, never a part. If the block fails, nothing is left of it.

    Args:
      mode: permissions of the new file; by default as the umask has it.
      temporary: name until then, in the same folder; by default a random name.

    Raises `OSError`.
    """
    target = Path(path)
    written = temporary or target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with new_file(written, mode=0o666 if mode is None else mode) as file:
            if mode is not None:  # whatever the umask
                os.fchmod(file.fileno(), mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        written.replace(target)
        sync_folder(str(target.parent))
    except BaseException:
        with suppress(OSError):  # an unusable folder holds nothing to remove
            written.unlink(missing_ok=True)
        raise


def sync_folder(path: str) -> None:
    """Make a rename durable: the name is kept in the folder, not in the file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
