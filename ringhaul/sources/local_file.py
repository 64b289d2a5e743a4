"""A local file that is read as one version: what was planned, from the first byte to the last.

A kernel sets the times of a file before it changes the content. So if a file's path still shows the
planned version after some bytes were read, these are bytes of that version.
"""

from __future__ import annotations

import io
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ringhaul.errors import SourceChanged, SourceMissing
from ringhaul.sources.source import SourceFile
from ringhaul.storage.file_version import FileVersion, changed, stamp

_NO_FILE = "was a file when the job started, and is none now"


class LocalFile(io.FileIO):
    """An open file whose path still leads to it: each read raises `SourceChanged` otherwise.

    A file that was replaced could be read to its end, but other units of the job would read the
    new file.
    """

    def __init__(self, source: SourceFile) -> None:
        """Open the file. Raises `SourceMissing`, and `SourceChanged` if the file has changed since
        it was found."""
        self._path, self._size_bytes = source.path, source.size_bytes
        with _source_errors(source):
            super().__init__(source.path, "rb", opener=_open)
        try:
            status = os.fstat(self.fileno())
            _check(source, FileVersion.parse(source.version), status)
        except BaseException:
            self.close()
            raise
        # On a host that did not plan the job, this says more than the planned version.
        self._version, self._stamp = FileVersion.of(status), stamp(status)
        self._source = source

    def look(self) -> None:
        """Raise `SourceChanged` if the file was changed or replaced since it was opened."""
        with _source_errors(self._source):
            status = os.stat(self._path)
        if stamp(status) != self._stamp:
            _check(self._source, self._version, status)

    # The methods of io.FileIO return None only for what is not a regular file. An error, such as a
    # stale handle of a network mount, may mean that the file was replaced.

    def read(self, size: int | None = -1, /) -> bytes:
        try:
            return super().read(size) or b""
        finally:
            self.look()

    def readall(self) -> bytes:
        try:
            return super().readall() or b""
        finally:
            self.look()

    def readinto(self, buffer: Any, /) -> int:
        try:
            return super().readinto(buffer) or 0
        finally:
            self.look()


def check_local(source: SourceFile) -> None:
    """Raise `SourceChanged` if a local file has changed since it was found.

    The file is opened: a network mount then asks its server, and else shows what it remembers.
    """
    try:
        LocalFile(source).close()
    except SourceMissing:  # without the right to read it, what the system shows must suffice
        with _source_errors(source):
            status = os.stat(source.path)
        _check(source, FileVersion.parse(source.version), status)


def settle(sources: Iterable[SourceFile]) -> None:
    """Wait until each later change of local files would show in their times.

    Only files that changed a moment ago are waited for, some hundredths of a second. Raises
    `SourceChanged` for a file that changed in the meantime.
    """
    now_ns, fresh, wait_ns = time.time_ns(), [], 0
    for source in sources:
        version = FileVersion.parse(source.stored.version)
        if version is not None and (ready_ns := version.ready_ns(now_ns)) > 0:
            fresh.append(source.stored)
            wait_ns = max(wait_ns, ready_ns)
    if fresh:
        time.sleep(wait_ns / 1e9)
    for source in dict.fromkeys(fresh):
        check_local(source)


def _check(source: SourceFile, version: FileVersion | None, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SourceChanged(f"{source.path}: {_NO_FILE}")
    if why := changed(source.size_bytes, version, status):
        raise SourceChanged(f"{source.path}: {why}")


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe that took its place would block


@contextmanager
def _source_errors(source: SourceFile) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise SourceChanged(
            f"{source.path}: the file is gone; "
            f"it was {source.size_bytes:,} bytes when the job started"
        ) from None
    except IsADirectoryError:
        raise SourceChanged(f"{source.path}: {_NO_FILE}") from None
    except OSError as error:
        raise SourceMissing(f"{source.path}: {error.strerror or error}") from error
