"""List arrived files by folder, glob or object store prefix, and take their checksums."""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence

from ringhaul.errors import RinghaulError, SourceMissing
from ringhaul.schedule.arrivals import Arrived, Listed
from ringhaul.sources.find import local_path
from ringhaul.sources.globs import expand, folders_below
from ringhaul.sources.unload_lists import is_list
from ringhaul.storage.access import mask_url
from ringhaul.storage.hidden import is_hidden, is_hidden_file, matches
from ringhaul.storage.remote import is_remote, list_files, open_stream, stat_file

_READ_BYTES = 8 << 20

#: Callback for a path or URL that cannot be listed, with the error. May raise.
OnError = Callable[[str, Exception], None]
#: Callback for each pattern before it is listed, which may take for ever.
OnPattern = Callable[[str], None]


class OddName(SourceMissing):
    """A file whose name is not valid text and so cannot be recorded."""


def _raise(path: str, error: Exception) -> None:
    raise error


def _ignore(pattern: str) -> None:
    pass


def list_arrivals(
    patterns: tuple[str, ...],
    folder: str,
    on_error: OnError = _raise,
    on_pattern: OnPattern = _ignore,
) -> list[Listed]:
    """Return the files that match the patterns now, each once. No match is not an error.

    A pattern is a glob, a folder (all files below it, following links to folders) or a URL of
    either; a relative one starts at `folder`. What is kept aside is left out (see `hidden`): by
    convention, such files are still being written. So are the lists of unloads.
    `on_error` is called for a missing or unreadable folder, a store that does not answer and a name
    that is not text; all other files are listed. The default `on_error` raises: OSError,
    `SourceMissing`, and the errors of `remote.list_files`.
    """
    found: dict[str, Listed] = {}
    for pattern in patterns:
        label = mask_url(pattern) if is_remote(pattern) else pattern
        on_pattern(label)
        try:
            for listed in _list(pattern, folder, on_error):
                found[listed.path] = listed
        except (RinghaulError, OSError) as error:
            on_error(label, error)
    return sorted(found.values())


def are_bases_there(patterns: tuple[str, ...], folder: str) -> bool:
    """Return whether the base folders of the patterns exist. A mount may be away."""
    return all(
        os.path.isdir(_base(_path(pattern, folder), pattern))
        for pattern in patterns
        if not is_remote(pattern)
    )


def find_strange(patterns: tuple[str, ...], folder: str, paths: Sequence[str]) -> str | None:
    """Return the first of `paths` that `list_arrivals` could never return for these patterns; None
    if all could be. No file is accessed.

    The paths of a run come from Redis, and write access to it must not be enough to load other
    files.
    """
    allowed = [_allowed(pattern, folder) for pattern in patterns]
    return next((path for path in paths if not any(ok(path) for ok in allowed)), None)


def _allowed(pattern: str, folder: str) -> Callable[[str], bool]:
    """Return the test whether a pattern may list a path."""
    base = pattern if is_remote(pattern) else _path(pattern, folder)
    is_folder = not is_remote(pattern) and os.path.isdir(base)

    def ok(path: str) -> bool:
        if any(name in (".", "..") for name in path.split("/")) or is_remote(path) != is_remote(
            pattern
        ):
            return False
        if glob.has_magic(base) and not is_folder:
            return matches(base, path)
        below = f"{base.rstrip('/')}/"
        return path == base or (
            path.startswith(below) and not is_hidden(path[len(below) :].split("/"))
        )

    return ok


def take_checksum(file: Listed) -> Arrived | None:
    """Return the file with the checksum of its content; None if it has changed since it was listed.

    If the store has versions, an object's version (its ETag) is used instead: equal bytes uploaded
    in the same way have an equal ETag. Raises OSError, and as `remote.open_stream` does.
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
    try:
        with open(file.path, "rb") as opened:
            checksum = hashlib.file_digest(opened, "sha256").hexdigest()
    except FileNotFoundError:
        return None
    return Arrived(*file, checksum=checksum) if _stat(file.path) == file else None


def _list(pattern: str, folder: str, on_error: OnError) -> Iterator[Listed]:
    if is_remote(pattern):
        for file in list_files(pattern):
            if not is_list(file.path):
                yield Listed(file.path, file.size_bytes, file.version)
        return
    path = _path(pattern, folder)
    if os.path.isdir(path):
        names = _below(path, on_error)
    else:
        base = _base(path, pattern)
        try:
            os.scandir(base).close()
        except OSError as error:  # a glob would just find nothing there
            on_error(base, error)
            return
        names = iter(expand(path))
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            legible = os.fsencode(name).decode(errors="backslashreplace")
            on_error(legible, OddName(f"{legible}: the file name is not UTF-8: rename it"))
            continue
        try:
            listed = _stat(name)
        except OSError as error:
            on_error(name, error)
            continue
        if listed is not None and not is_list(name):
            yield listed


def _path(pattern: str, folder: str) -> str:
    return os.path.abspath(os.path.join(folder, local_path(pattern)))


def _base(path: str, pattern: str) -> str:
    """Return the folder at which a pattern starts. `path`: the pattern as an absolute path."""
    if os.path.isdir(path) or (pattern.endswith(os.sep) and not glob.has_magic(path)):
        return path
    base = os.path.dirname(path)
    while glob.has_magic(base):
        base = os.path.dirname(base)
    return base


def _below(folder: str, on_error: OnError) -> Iterator[str]:
    def failed(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # removed since its folder was listed
            on_error(error.filename, error)

    for here, names in folders_below(folder, failed=failed):
        for name in names:
            if not is_hidden_file(name):
                yield here + name


def _stat(path: str) -> Listed | None:
    """Return the current state of a file; None if it is gone or not a regular file. Raises OSError
    if it cannot be accessed."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Listed(path, status.st_size, str(status.st_mtime_ns))
