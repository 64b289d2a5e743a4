"""Find the files that a user's sources name: files, globs and folders, local and behind URLs.

A folder that an unload has written holds what its manifest lists; any other, the files whose
suffixes show a format.
"""

import difflib
import errno
import glob
import os
import stat
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NoReturn
from urllib.parse import unquote

from ringhaul.errors import SourceMissing, UsageError
from ringhaul.formats.compression import DECOMPRESSORS
from ringhaul.formats.dialect import RFC_4180, CsvDialect
from ringhaul.formats.suffixes import format_of, plain_name, suffixes_of
from ringhaul.formats.zip_directory import is_archive, split_source
from ringhaul.option_names import input_option
from ringhaul.sources.archive_members import find_packed, is_whole
from ringhaul.sources.globs import expand, folders_below, is_aside
from ringhaul.sources.local_file import settle
from ringhaul.sources.source import SourceFile
from ringhaul.sources.unload_lists import unloaded_parts, unloaded_remote, without_lists
from ringhaul.storage import remote
from ringhaul.storage.access import (
    WEB_SCHEMES,
    check_url,
    is_url,
    mask_url,
    scheme_of,
    split_url,
)
from ringhaul.storage.file_version import version_text
from ringhaul.storage.hidden import (
    ICEBERG,
    MANIFESTS,
    MARKS,
    TABLE_LOGS,
    is_hidden_file,
    is_iceberg_metadata,
)
from ringhaul.storage.remote import RemoteFile, is_remote


def find_sources(
    args: Sequence[str], dialect: CsvDialect = RFC_4180, file_format: str = "auto"
) -> list[SourceFile]:
    """Return the files that `args` name: files, globs, folders, members of zip archives, and
    URLs of all these.

    A file that is named twice is read once, at its first place. `file_format`: one of `FORMATS`,
    or "auto": by each file's suffix. Raises `SourceMissing` and `UsageError` naming the argument
    that gives nothing to read, and `SourceUnavailable`.
    """
    #: (path, members) -> the file behind a URL
    paths: dict[tuple[str, str | None], RemoteFile | None] = {}
    for arg in args:
        place, members = split_source(arg)
        if members is not None and not is_remote(arg) and os.path.lexists(local_path(arg)):
            place, members = arg, None  # a file that has such a name
        if is_remote(place):
            paths |= {(file.path, members): file for file in _find_remote(place, file_format)}
        else:
            found = _find_local(local_path(place), file_format)
            paths.update(((os.path.abspath(path), members), None) for path in found)
    paths = without_lists(paths)
    sources: dict[str, SourceFile] = {}
    for (path, members), file in paths.items():
        if members is not None or is_archive(path):
            for source in find_packed(path, file, members, dialect, file_format):
                sources.setdefault(source.path, source)
        elif file is None:
            sources.setdefault(path, _source(path, dialect, format_of(path, file_format)))
        else:
            found_format = format_of(path, file_format)
            sources.setdefault(path, _remote_source(file, dialect, found_format))
    settle(sources.values())
    return list(sources.values())


def named(arg: str) -> tuple[list[str], list[str]]:
    """Expand a glob into the files that it matches and the folders to search.

    A plain path gives ([], [path]): it may be a file or a folder. Raises like `find_sources`.
    """
    if not is_remote(arg):
        path = local_path(arg)
        is_glob = glob.has_magic(path) and not os.path.lexists(path)
        return _matches(path) if is_glob else ([], [path])
    if scheme_of(arg) in WEB_SCHEMES or not glob.has_magic(arg):
        return [], [arg]
    found, folders = _remote_matches(arg)
    files = [file.path for file in found]
    return files, _counting(folders, files)


def local_path(arg: str) -> str:
    """Return a path, also from a `file://` URL. Raises `UsageError` for another host's URL."""
    if not is_url(arg):
        return arg
    check_url(arg)
    parts = split_url(arg)
    if parts.netloc not in ("", "localhost"):
        raise UsageError(f"{arg}: a file:// URL must be of this host; give file:///path")
    return unquote(parts.path)


def _find_local(arg: str, file_format: str) -> list[str]:
    if os.path.isdir(arg):
        return _in_folder(arg, file_format)
    if os.path.lexists(arg):
        return [arg]
    if glob.has_magic(arg):
        files, folders = _matches(arg)
        found = sorted(chain(files, *_in_folders(folders, arg, file_format)))
        if not found:
            raise SourceMissing(f"{arg}: no file matches{_but_hidden(arg)}")
        return found
    if arg.lower() in ("true", "false"):  # Bulk Loader's `-header false`
        wanted = f"{input_option('header')} or {input_option('no-header')}"
        raise SourceMissing(f"{arg}: no such file; a switch takes no value: write {wanted}")
    raise SourceMissing(f"{arg}: no such file{_nearest(arg)}")


def _but_hidden(pattern: str) -> str:
    """Return what to add to a message about a glob that matches only what is kept aside."""
    aside = next(iter(sorted(glob.glob(pattern))), None)
    return "" if aside is None else f" but {aside}, which counts as hidden: name it to read it"


def _in_folders(folders: Iterable[str], pattern: str, file_format: str) -> Iterator[list[str]]:
    """Yield the files in each of the folders that a glob matches. With `**`, which matches all
    folders, there may be none."""
    for folder in folders:
        try:
            yield _in_folder(folder, file_format)
        except _NothingBelow:
            if "**" not in pattern:
                raise


def _in_folder(folder: str, file_format: str) -> list[str]:
    parts = unloaded_parts(folder)
    if parts is not None:
        return parts
    suffixes = suffixes_of(file_format)
    found = sorted(_files_below(folder, suffixes))
    if not found:
        raise _nothing_below(folder, suffixes)
    return found


def _files_below(folder: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Yield the files whose names show a format, following links to folders.

    Raises `UsageError` for a table of a format that keeps files of older versions as well.
    """
    for here, names in folders_below(folder, failed=_raise_missing):
        _refuse_table(here, names)
        for name in names:
            if name in MANIFESTS or is_hidden_file(name):
                continue
            if plain_name(name).endswith(suffixes):
                yield here + name


def _refuse_table(here: str, names: Sequence[str]) -> None:
    for log in TABLE_LOGS:
        if os.path.isdir(here + log):
            raise _is_table(here, TABLE_LOGS[log])
    folder = here.rstrip("/")
    if any(is_iceberg_metadata(os.path.basename(folder), name) for name in names):
        raise _is_table(os.path.dirname(folder), ICEBERG)


def _is_table(folder: str, table_format: str) -> UsageError:
    place = mask_url(folder.rstrip("/") or ".")
    return UsageError(
        f"{place}: is a table of {table_format}, whose folder also keeps files of older versions "
        "and deleted rows: have its engine export the rows to a folder of Parquet, and load that. "
        f"A glob such as '{place}/*.parquet' takes the files as they are"
    )


def _raise_missing(error: OSError) -> NoReturn:
    raise SourceMissing(f"{error.filename}: {error.strerror or error}") from error


def _matches(pattern: str) -> tuple[list[str], list[str]]:
    """Return the files that a glob matches, and folders, such as `2026-01-31.csv/`; both sorted.

    Anything else, such as a dangling link, is refused when it is opened.
    """
    _check_readable(os.path.dirname(pattern))
    matches = expand(pattern)
    within = {path for path in matches if os.path.isdir(path)}
    files = sorted(set(matches) - within)
    # `*` also matches what a file system keeps for itself.
    folders = [path for path in matches if path in within and not _is_kept_aside(path, pattern)]
    return files, _counting(folders, files)


def _is_kept_aside(path: str, pattern: str) -> bool:
    """Return whether a folder is not for data, and the glob does not name it."""
    name = os.path.basename(path.rstrip("/"))
    return is_aside(name) and not name.startswith(MARKS) and name not in pattern


def _counting(folders: Sequence[str], files: Sequence[str]) -> list[str]:
    """Return the matched folders that `**` did not already search; `files`: the sorted matches.

    With `**` the glob has selected files in some folders itself; the others are searched whole.
    """
    counting, taken = list[str](), tuple[str, ...]()
    for folder in folders:
        if not _any_below(folder, files) and not folder.startswith(taken):
            counting.append(folder)
            taken = (*taken, os.path.join(folder, ""))
    return counting


def _any_below(folder: str, paths: Sequence[str]) -> bool:
    """Return whether any of the sorted `paths` lies below a folder."""
    beginning = os.path.join(folder, "")
    at = bisect_left(paths, beginning)
    return at < len(paths) and paths[at].startswith(beginning)


def _check_readable(pattern: str) -> None:
    """Raise `SourceMissing` for a folder that a glob would skip because it cannot be read."""
    if not glob.has_magic(pattern):
        return
    _check_readable(os.path.dirname(pattern))
    for folder in expand(pattern):
        if is_aside(os.path.basename(folder)) or not os.path.isdir(folder):
            continue
        if not os.access(folder, os.R_OK | os.X_OK):
            raise SourceMissing(f"{folder}: {os.strerror(errno.EACCES)}")


def _nearest(path: str) -> str:
    folder, name = os.path.split(path)
    if any(os.path.exists(part.strip()) for part in path.split(",") if part.strip() != path):
        return "; between several files put spaces, not commas"
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return f"; there is no directory {folder}"
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {os.path.join(folder, close[0])}?" if close else ""


def _find_remote(arg: str, file_format: str) -> list[RemoteFile]:
    """Find the files that a URL names, like `_find_local`."""
    check_url(arg)
    folder = arg.rstrip("/") + "/"
    if scheme_of(arg) in WEB_SCHEMES:
        parts = unloaded_remote(folder) if arg.endswith("/") else None
        return parts or remote.list_files(arg)
    listing = remote.list_matches(arg)
    found, folders = listing.files, _with_slashes(listing.folders)
    if not (found or folders or listing.aside):
        what = "no object matches" if glob.has_magic(arg) else "no such object or folder"
        raise SourceMissing(f"{mask_url(arg)}: {what}")
    if [file.path for file in found] == [arg]:
        return found
    if glob.has_magic(arg):
        for matched in _counting(folders, [file.path for file in found]):
            try:
                found += _find_remote(matched, file_format)
            except _NothingBelow:  # see `_in_folders`
                if "**" not in arg:
                    raise
        if not found:
            raise SourceMissing(f"{mask_url(arg)}: no object matches")
        return sorted(found)
    every = {file.path: file for file in [*found, *listing.aside]}
    if any(folder + name in every for name in MANIFESTS):
        parts = unloaded_remote(folder, every)
        if parts is not None:
            return parts
    for path in every:
        _refuse_remote_table(path, folder)
    suffixes = suffixes_of(file_format)
    wanted = [
        file
        for file in found
        if plain_name(file.path).endswith(suffixes)
        and file.path.rpartition("/")[2] not in MANIFESTS
    ]
    if not wanted:
        raise _nothing_below(arg, suffixes)
    return wanted


def _refuse_remote_table(path: str, folder: str) -> None:
    """Raise `UsageError` for an object that belongs to a table; `folder` is what is read."""
    names = path[len(folder) :].split("/")
    for at, name in enumerate(names[:-1]):
        if name in TABLE_LOGS:
            raise _is_table(folder + "/".join(names[:at]), TABLE_LOGS[name])
    if len(names) > 1 and is_iceberg_metadata(names[-2], names[-1]):
        raise _is_table(folder + "/".join(names[:-2]), ICEBERG)


def _remote_matches(url: str) -> tuple[list[RemoteFile], list[str]]:
    """Return the files that a URL names, and the folders that a glob matches, each with a slash."""
    listing = remote.list_matches(url)
    return listing.files, _with_slashes(listing.folders)


def _with_slashes(folders: Sequence[str]) -> list[str]:
    return [f"{folder.rstrip('/')}/" for folder in folders]


class _NothingBelow(UsageError):
    """A folder holds no file to load."""


def _nothing_below(folder: str, suffixes: tuple[str, ...]) -> _NothingBelow:
    return _NothingBelow(
        f"{folder}: the directory holds no {', '.join(suffixes)} file, plain or "
        f"compressed ({', '.join(DECOMPRESSORS)}); name the files, or use a glob. Names that begin "
        f"with {' or '.join(MARKS)} count as hidden"
    )


def _source(path: str, dialect: CsvDialect, file_format: str) -> SourceFile:
    try:
        status = os.stat(path)
    except OSError as error:
        raise SourceMissing(f"{path}: {error.strerror or error}") from error
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path}: not a regular file; pipe it in with - as the source")
    whole = is_whole(path, dialect, file_format)
    return SourceFile(path, status.st_size, whole, version_text(status))


def _remote_source(file: RemoteFile, dialect: CsvDialect, file_format: str) -> SourceFile:
    whole = is_whole(file.path, dialect, file_format)
    if file_format == "parquet" and not file.ranges:
        raise UsageError(
            f"{mask_url(file.path)}: its server does not serve parts of a file, which Parquet "
            "needs; download it first"
        )
    return SourceFile(file.path, file.size_bytes, whole or not file.ranges, file.version)
