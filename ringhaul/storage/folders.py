"""Store parts in a folder on a disk, or in a folder behind a URL that fsspec supports.

A file appears only when it is complete. On a disk it is written under a temporary name
(`.<name>.tmp`), synced, and then renamed; in an object store it appears when its upload is
completed; other stores rename too. A process that dies leaves the temporary file, which
`parts.remove_orphans` removes, or an upload that was never completed, which an object store drops
by its own rules.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, BinaryIO, Protocol
from urllib.parse import unquote

from ringhaul.errors import NO_ROOM, OutputUnavailable, OutputUnusable, UsageError
from ringhaul.new_file import new_file, sync_folder
from ringhaul.option_names import job_option
from ringhaul.storage.access import (
    OBJECT_STORES,
    WEB_SCHEMES,
    check_place,
    check_url,
    is_url,
    mask_url,
    scheme_of,
    split_url,
)
from ringhaul.storage.errors import store_errors
from ringhaul.storage.hidden import is_hidden_folder
from ringhaul.storage.stores import open_store

#: Small writes (Parquet's) are gathered; large writes bypass the buffer.
_BUFFER_BYTES = 2**20
#: Size of an upload's parts. S3 takes 10,000 of them for one object: 160 GB.
_UPLOAD_BYTES = 16 * 2**20

_CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.EEXIST)

#: Raises a plain `OutputUnusable` or `OutputUnavailable` for a folder behind a URL.
_store_errors = partial(store_errors, refused=OutputUnusable, away=OutputUnavailable)


class NewFile(Protocol):
    """A file that is not visible yet."""

    def write(self, data: Any, /) -> None:
        """Write all of `data`."""

    def publish(self) -> None:
        """Make the file durable, and visible under its name."""

    def discard(self) -> None:
        """Remove it completely. Does nothing once it is published."""


class Folder(Protocol):
    """A folder of files. Its methods raise `OutputUnusable` and `OutputUnavailable`."""

    def create(self, name: str) -> NewFile:
        """Begin a file; creates the folder if it does not exist. `name` may have folders."""

    def sizes(self, *, deep: bool = False) -> dict[str, int]:
        """Return the names and bytes of the folder's files, temporary files too; {} if it is
        missing. `deep`: include files at all depths, except in folders that are kept aside."""

    def read(self, name: str) -> bytes | None:
        """Return a complete file; None if it does not exist."""

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading from its start, and for seeking."""

    def rename(self, name: str, new: str) -> None:
        """Give a file another name; a file of that name is replaced."""

    def remove_empty(self) -> None:
        """Remove the folder itself, unless it has files or does not exist."""


def open_folder(url: str) -> Folder:
    """Return the folder that a path or a URL names. Opens nothing.

    Behind a URL, call this after the fork of a worker: clients of stores do not survive a fork.
    Raises `UsageError` for a URL that may not be opened, that cannot be written to, or whose
    package is not installed.
    """
    check_place(url)
    if is_url(url):
        check_url(url)
    path = local_path(url)
    if path is not None:
        return LocalFolder(path)
    if scheme_of(url) in WEB_SCHEMES:
        raise UsageError(
            f"{mask_url(url)}: nothing is written to a web server; give s3:// or gs://"
        )
    return RemoteFolder(url)


def local_path(url: str) -> str | None:
    """Return the path of a folder on a disk, given as such or as file://; None: it is a URL."""
    if not is_url(url):
        return url
    return unquote(split_url(url).path) if scheme_of(url) == "file" else None


def try_writing(url: str) -> None:
    """Write and remove a small file. Raises `OutputUnusable`, `OutputUnavailable`, `UsageError`."""
    folder = open_folder(url)
    name = f".ringhaul-{secrets.token_hex(8)}"
    file = folder.create(name)
    try:
        file.write(b"ringhaul looks whether it can write here\n")
        file.publish()
    except BaseException:
        file.discard()
        raise
    folder.remove(name)


class LocalFolder:
    """A folder on a disk of this host, or mounted here."""

    def __init__(self, path: str) -> None:
        self._path = path

    def create(self, name: str) -> NewFile:
        with _os_errors(self._path):
            check_place(self._path)  # again: a link may lead elsewhere by now
            folder, base = os.path.split(os.path.join(self._path, name))
            os.makedirs(folder, exist_ok=True)
            return _LocalFile(folder, base)

    def sizes(self, *, deep: bool = False) -> dict[str, int]:
        with _os_errors(self._path):
            return dict(_sizes(self._path, "", deep=deep))

    def read(self, name: str) -> bytes | None:
        with _os_errors(self._path):
            try:
                with open(os.path.join(self._path, name), "rb") as file:
                    return file.read()
            except FileNotFoundError:
                return None

    def remove(self, name: str) -> None:
        with _os_errors(self._path), suppress(FileNotFoundError):
            os.unlink(os.path.join(self._path, name))

    def open(self, name: str) -> BinaryIO:
        with _os_errors(self._path):
            return open(os.path.join(self._path, name), "rb")

    def rename(self, name: str, new: str) -> None:
        with _os_errors(self._path):
            os.rename(os.path.join(self._path, name), os.path.join(self._path, new))
            sync_folder(self._path)

    def remove_empty(self) -> None:
        with suppress(OSError):
            os.rmdir(self._path)


def _sizes(path: str, below: str, *, deep: bool) -> Iterator[tuple[str, int]]:
    """Yield the names and sizes of what is in a folder. `below` precedes the names."""
    try:
        entries = list(os.scandir(path))
    except FileNotFoundError:
        return
    for entry in entries:
        with suppress(FileNotFoundError):  # removed meanwhile by another attempt
            if not deep or not entry.is_dir(follow_symlinks=False):
                yield below + entry.name, entry.stat().st_size
            elif not is_hidden_folder(entry.name):
                yield from _sizes(entry.path, f"{below}{entry.name}/", deep=True)


class _LocalFile:
    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self._final = os.path.join(folder, name)
        self._temporary = os.path.join(folder, f".{name}.tmp")
        self._file = new_file(self._temporary, buffer_bytes=_BUFFER_BYTES)

    def write(self, data: Any, /) -> None:
        with _os_errors(self._folder):
            self._file.write(data)

    def publish(self) -> None:
        with _os_errors(self._folder):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            os.rename(self._temporary, self._final)
            sync_folder(self._folder)

    def discard(self) -> None:
        with suppress(OSError):  # what could not be written cannot be flushed
            self._file.close()
        with suppress(OSError):
            os.unlink(self._temporary)


class RemoteFolder:
    """A folder behind a URL, such as `s3://bucket/exports/orders`."""

    def __init__(self, url: str) -> None:
        self._store, self._path = open_store(url)
        self._url = url
        self._uploads = scheme_of(url) in OBJECT_STORES

    def create(self, name: str) -> NewFile:
        with _store_errors(self._url):
            if self._uploads:  # needs no folder; creating a folder would create the bucket
                file = self._store.open(self._of(name), "wb", block_size=_UPLOAD_BYTES)
                return _Upload(self._url, file)
            folder, _, base = name.rpartition("/")
            self._store.makedirs(self._of(folder) if folder else self._path, exist_ok=True)
            temporary = self._of(f"{folder}/.{base}.tmp" if folder else f".{base}.tmp")
            final = self._of(name)
            return _RenamedFile(self._url, self._store, temporary, final)

    def sizes(self, *, deep: bool = False) -> dict[str, int]:
        with _store_errors(self._url):
            self._store.invalidate_cache(self._path)
            try:
                if deep:
                    return self._deep_sizes()
                entries = self._store.ls(self._path, detail=True)
            except FileNotFoundError:
                return {}
            files = [entry for entry in entries if entry["type"] == "file"]
            return {entry["name"].rsplit("/", 1)[-1]: int(entry["size"]) for entry in files}

    def _deep_sizes(self) -> dict[str, int]:
        found = self._store.find(self._path, detail=True)
        below = self._path.strip("/") + "/"
        sizes = {
            name.strip("/").removeprefix(below): int(entry["size"]) for name, entry in found.items()
        }
        return {
            name: size
            for name, size in sizes.items()
            if not any(map(is_hidden_folder, name.split("/")[:-1]))
        }

    def read(self, name: str) -> bytes | None:
        with _store_errors(self._url):
            try:
                return bytes(self._store.cat_file(self._of(name)))
            except FileNotFoundError:
                return None

    def remove(self, name: str) -> None:
        with _store_errors(self._url), suppress(FileNotFoundError):
            self._store.rm_file(self._of(name))

    def open(self, name: str) -> BinaryIO:
        with _store_errors(self._url):
            opened: BinaryIO = self._store.open(self._of(name), "rb")
            return opened

    def rename(self, name: str, new: str) -> None:
        with _store_errors(self._url):
            self._store.mv(self._of(name), self._of(new))

    def remove_empty(self) -> None:
        if not self._uploads:  # an object store has no folders
            with suppress(Exception):  # clients of stores raise what they like
                self._store.rmdir(self._path)

    def _of(self, name: str) -> str:
        return f"{self._path.rstrip('/')}/{name}"


class _Upload:
    """A file of an object store: closing it completes the upload."""

    def __init__(self, url: str, file: Any) -> None:
        self._url = url
        self._file = file

    def write(self, data: Any, /) -> None:
        with _store_errors(self._url):
            self._file.write(data)

    def publish(self) -> None:
        with _store_errors(self._url):
            self._file.close()

    def discard(self) -> None:
        if not self._file.closed:
            with suppress(Exception):  # clients of stores raise what they like
                self._file.discard()
            # Closed without its close(), which would complete the upload, as `__del__` would.
            self._file.closed = True


class _RenamedFile:
    """A file of a store that works like a disk."""

    def __init__(self, url: str, store: Any, temporary: str, final: str) -> None:
        self._url, self._store = url, store
        self._temporary, self._final = temporary, final
        self._file = store.open(temporary, "wb")

    def write(self, data: Any, /) -> None:
        with _store_errors(self._url):
            self._file.write(data)

    def publish(self) -> None:
        with _store_errors(self._url):
            self._file.close()
            self._store.mv(self._temporary, self._final)

    def discard(self) -> None:
        with suppress(Exception):
            self._file.close()
        with suppress(Exception):
            self._store.rm_file(self._temporary)


@contextmanager
def _os_errors(folder: str) -> Iterator[None]:
    """Raise a plain message instead of an `OSError`: why a folder cannot be used, what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in NO_ROOM:
            raise OutputUnusable(
                f"{folder}: no space is left; make room there, or name another folder"
            ) from error
        if error.errno == errno.EFBIG:
            raise OutputUnusable(
                f"{folder}: a part is larger than a file may be there (see ulimit -f); "
                f"ask for smaller parts with {job_option('max-file-size')}"
            ) from error
        if error.errno in _CLOSED or isinstance(error, PermissionError):
            raise OutputUnusable(
                f"{folder}: cannot be written: {reason}; let the workers' user write there, or "
                "name another folder"
            ) from error
        if error.errno in _GONE or isinstance(error, FileNotFoundError | NotADirectoryError):
            raise OutputUnusable(
                f"{folder}: is not a folder that can be written: {reason}; every worker must see "
                "the same folder under this name"
            ) from error
        raise OutputUnavailable(f"{folder}: {reason}") from error
