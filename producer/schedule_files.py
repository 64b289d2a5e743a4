"""Files that arrive: what a folder, a glob or a prefix of an object store lists, and checksums."""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from collections.abc import Iterator

from ringhaul.formats.remote import is_remote, list_files, open_stream, stat_file
from ringhaul.schedule.arrivals import Arrived, Listed

_READ_BYTES = 8 << 20


def list_arrivals(patterns: tuple[str, ...], folder: str) -> list[Listed]:
    """The files that the patterns name now, each once. None is no error: none has arrived.

    A pattern is a glob, a folder (all files below it) or a URL of either; a relative one begins at
    `folder`. Names that begin with a dot are left out: they are being written, by custom.
    Raises as `remote.list_files` does.
    """
    found: dict[str, Listed] = {}
    for pattern in patterns:
        for listed in _list(pattern, folder):
            found[listed.path] = listed
    return sorted(found.values())


def take_checksum(file: Listed) -> Arrived | None:
    """The file with the checksum of its content; None: it is not what was listed any more.

    An object's version (its ETag) is taken for one, as long as its store tells one: it is the same
    for the same bytes put there in the same way. Raises OSError, and as `remote.open_stream` does.
    """
    if is_remote(file.path):
        if file.stamp:
            return Arrived(*file, checksum=file.stamp)
        remote = stat_file(file.path)
        digest = hashlib.sha256()
        with open_stream(remote) as stream:
            while data := stream.read(_READ_BYTES):
                digest.update(data)
        same = remote.size_bytes == file.size_bytes
        return Arrived(*file, checksum=digest.hexdigest()) if same else None
    with open(file.path, "rb") as opened:
        checksum = hashlib.file_digest(opened, "sha256").hexdigest()
    return Arrived(*file, checksum=checksum) if _stat(file.path) == file else None


def _list(pattern: str, folder: str) -> Iterator[Listed]:
    if is_remote(pattern):
        for file in list_files(pattern):
            yield Listed(file.path, file.size_bytes, file.version)
        return
    path = os.path.abspath(os.path.join(folder, pattern))
    names = _below(path) if os.path.isdir(path) else glob.iglob(path, recursive=True)
    for name in names:
        listed = _stat(name)
        if listed is not None:
            yield listed


def _below(folder: str) -> Iterator[str]:
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith("."):
                yield os.path.join(here, name)


def _stat(path: str) -> Listed | None:
    """The file as it is now; None: gone, or no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Listed(path, status.st_size, str(status.st_mtime_ns))
