"""Find the files that the list of an unload names, and tell such lists from data."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TypeVar

from ringhaul.errors import SourceMissing, UsageError
from ringhaul.storage import remote
from ringhaul.storage.access import mask_url
from ringhaul.storage.hidden import MANIFESTS
from ringhaul.storage.remote import RemoteFile, is_remote

_T = TypeVar("_T")
#: The name of a part of an unload.
_PART = re.compile(r"part-\d{6,}-\d{6}-(?P<job>.+)-[A-Za-z0-9]+\.[a-z0-9.]+")


def unloaded_parts(folder: str) -> list[str] | None:
    """Return the files that the list of an unload names; None: the folder has none of ours.

    Other files in the folder, such as a part of an attempt that did not count, are left out.
    """
    for listing in MANIFESTS:
        path = os.path.join(folder, listing)
        try:
            with open(path, "rb") as file:
                names = _listed(file.read(), path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise SourceMissing(f"{path}: {error.strerror or error}") from error
        if names is None:
            continue
        for name, size_bytes in names.items():
            part = os.path.join(folder, name)
            if not os.path.isfile(part):
                raise SourceMissing(f"{folder}: its {listing} lists {name}, which is not there")
            _check_size(path, name, size_bytes, os.path.getsize(part))
        return [os.path.join(folder, name) for name in names]
    return None


def unloaded_remote(
    folder: str, known: Mapping[str, RemoteFile] | None = None
) -> list[RemoteFile] | None:
    """Return the files that the list of an unload names; None: the folder has none of ours.

    `folder` ends with a slash. `known`: all files below it, if they could be listed.
    """
    for listing in MANIFESTS:
        if known is not None and folder + listing not in known:
            continue
        content = remote.read_small(folder + listing)
        names = None if content is None else _listed(content, mask_url(folder + listing))
        if names is None:
            continue
        found = known or {folder + name: remote.stat_file(folder + name) for name in names}
        for name, size_bytes in names.items():
            if folder + name not in found:
                raise SourceMissing(
                    f"{mask_url(folder)}: its {listing} lists {name}, which is not there"
                )
            _check_size(
                mask_url(folder + listing), name, size_bytes, found[folder + name].size_bytes
            )
        return [found[folder + name] for name in names]
    return None


def find_unfinished(paths: Iterable[str]) -> dict[str, str]:
    """Return the folders that have parts of an unload and no list of them, each with the job.

    The unload did not finish, or its list was not copied with the parts.
    """
    #: Topmost folder -> the job, and the folders from there down to the first part.
    jobs: dict[str, tuple[str, list[str]]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        found = _PART.fullmatch(name)
        if found is None:
            continue
        places = [folder]
        while "=" in folder.rpartition("/")[2]:  # a folder named after a value
            folder = folder.rpartition("/")[0]
            places.insert(0, folder)
        jobs.setdefault(folder, (found["job"], places))
    return {
        folder: job for folder, (job, places) in jobs.items() if not any(map(_has_list, places))
    }


def _has_list(folder: str) -> bool:
    names = [f"{folder}/{name}" for name in MANIFESTS]
    return any(
        remote.read_small(name) is not None if is_remote(name) else os.path.isfile(name)
        for name in names
    )


def without_lists(paths: dict[tuple[str, str | None], _T]) -> dict[tuple[str, str | None], _T]:
    """Return files without the lists of unloads, which a glob such as `out/*.json` matches.

    `paths`: by path, and by members of an archive. Raises `UsageError` if nothing else is named.
    """
    lists = [path for path, members in paths if members is None and is_list(path)]
    if lists and len(lists) == len(paths):
        folder = os.path.dirname(lists[0])
        raise UsageError(
            f"{mask_url(lists[0])}: lists the files of an unload; to load these, give the folder, "
            f"{mask_url(folder)}/"
        )
    return {key: file for key, file in paths.items() if key[0] not in lists}


def is_list(path: str) -> bool:
    """Return whether a file is the list of an unload's files: by its name and by its content."""
    if path.rpartition("/")[2] not in MANIFESTS:
        return False
    content: bytes | None = None
    if is_remote(path):
        content = remote.read_small(path)
    else:
        with suppress(OSError), open(path, "rb") as file:
            content = file.read()
    return content is not None and _parts(content) is not None


def _check_size(path: str, name: str, size_bytes: int | None, found_bytes: int) -> None:
    """Raise `UsageError` for a file of another size than the list of its unload says: it was cut
    short on its way, or changed."""
    if size_bytes not in (None, found_bytes):
        folder, _, listing = path.rpartition("/")
        raise UsageError(
            f"{folder}: its {listing} lists {name} with {size_bytes:,} bytes, and it has "
            f"{found_bytes:,}: copy it again if it was cut short; to load changed files, name them "
            "instead of the folder"
        )


def _listed(content: bytes, path: str) -> dict[str, int | None] | None:
    """Return the names in the list of an unload, each with its size if that is known; None: it is
    something else."""
    names = _parts(content)
    if names is None:
        return None
    folder, _, listing = path.rpartition("/")
    if not names:
        raise UsageError(f"{folder}: its {listing} lists no file: nothing was unloaded")
    for name in names:
        if any(part in ("", ".", "..") for part in name.split("/")):
            raise UsageError(f"{folder}: its {listing} lists {name}, which is outside the folder")
    return names


def _parts(content: bytes) -> dict[str, int | None] | None:
    try:
        sizes = {str(part["name"]): part.get("bytes") for part in json.loads(content)["parts"]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return {name: size if isinstance(size, int) else None for name, size in sizes.items()}
