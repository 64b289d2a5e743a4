"""Expand the globs of paths on this host, and list the folders below a folder.

A folder is entered once, whatever links lead to it. Python's `glob` follows a circle of links until
the system refuses, finds each file 41 times by then, and with two circles does not end.
"""

import glob
import os
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain

from ringhaul.storage.hidden import MARKS, is_hidden_file, is_hidden_folder, reveals

#: Device and inode of each folder that was entered -> the path that was used.
Entered = dict[tuple[int, int], str]


def expand(pattern: str) -> list[str]:
    """Return the paths that a glob matches, sorted; `**` stands for folders at any depth, or none.

    Links to folders are followed. Of several paths to one place, by links to folders, the path
    with the fewest links is returned. Wildcards do not match names that are kept aside (`hidden`)
    unless these begin as the pattern does there; `**` does not match `lost+found`. What cannot be
    read is skipped.
    """
    real, links_count = cache(os.path.realpath), cache(_links_count)
    paths: dict[tuple[str, str], str] = {}
    known: dict[str, int] = {}
    for path in sorted(_expand(pattern)):
        # A folder is a place itself; a file counts by the folder that it is in.
        folder = path.rstrip("/") if os.path.isdir(path) else os.path.dirname(path)
        place = (real(folder), path[len(folder) :].strip("/"))
        links = known[path] = links_count(folder)
        if place not in paths or links < known[paths[place]]:
            paths[place] = path
    return sorted(paths.values())


def _match(pattern: str) -> list[str]:
    """Do what `glob.glob` does for a pattern without `**`, without what is kept aside."""
    return [path for path in glob.glob(pattern) if not _is_aside_of(pattern, path)]


def _is_aside_of(pattern: str, path: str) -> bool:
    """Return whether a wildcard of the pattern matched a name that is kept aside."""
    if "_" not in path and "." not in path:
        return False
    parts, names = ([part for part in text.split("/") if part] for text in (pattern, path))
    last = len(names) - 1
    return any(
        name.startswith(MARKS)
        and glob.has_magic(part)
        and not reveals(part, name)
        and (is_hidden_folder(name) if at < last or os.path.isdir(path) else is_hidden_file(name))
        for at, (part, name) in enumerate(zip(parts, names, strict=False))
    )


def _links_count(folder: str) -> int:
    """Return how many parts of a folder's path are links."""
    parts = folder.split("/")
    return sum(os.path.islink("/".join(parts[:count])) for count in range(1, len(parts) + 1))


def _expand(pattern: str) -> set[str]:
    parts = pattern.split("/")
    if "**" not in parts:
        return set(_match(pattern))
    at = parts.index("**")
    while parts[at + 1 : at + 2] == ["**"]:  # `**/**` matches what `**` matches
        del parts[at]
    head = "".join(f"{part}/" for part in parts[:at])
    rest = "/".join(parts[at + 1 :]).lstrip("/")  # `**//*.csv` does not start at the root, either
    found = set[str]()
    entered: Entered = {}
    for root in sorted(_match(head), key=_by_link) if glob.has_magic(head) else [head]:
        for folder, _ in folders_below(root, entered):
            if at + 1 == len(parts):  # everything below, and the folder itself
                found |= {folder} if folder == root and root else set()
                found.update(_match(f"{glob.escape(folder)}*"))
            else:
                found |= _expand(glob.escape(folder) + rest)
    return {path for path in found if not _is_entered_elsewhere(path, entered)}


def _by_link(path: str) -> tuple[bool, str]:
    """Sort links after what they may lead to."""
    return os.path.islink(path.rstrip("/")), path


def folders_below(
    root: str, entered: Entered | None = None, failed: Callable[[OSError], None] | None = None
) -> Iterator[tuple[str, list[str]]]:
    """Yield a folder and those below, each with a trailing slash (of the working directory: ""),
    and the names in it that are not folders. Folders that are not for data are left out.

    Links come last: a folder below `root` is entered by its own path, not by a link to it.
    `entered`: folders entered before; new folders are added. `failed` is called for a folder that
    cannot be read, which is skipped; it may raise.
    """
    entered = {} if entered is None else entered
    top = root or "./"
    starts = [top]
    while starts:
        links: list[str] = []
        walks = (os.walk(start, onerror=failed) for start in starts)
        for here, folders, names in chain.from_iterable(walks):
            folder = os.path.join(here, "")[len(top) - len(root) :]
            try:
                status = os.stat(here)
            except OSError as error:
                folders.clear()
                if failed is not None:
                    failed(error)
                continue
            if entered.setdefault((status.st_dev, status.st_ino), folder) != folder:
                folders.clear()
                continue
            folders[:] = sorted(name for name in folders if not is_aside(name))
            below = (os.path.join(here, name) for name in folders)
            links.extend(path for path in below if os.path.islink(path))
            yield folder, names
        starts = sorted(links)


def is_aside(name: str) -> bool:
    """Return whether a folder is not for data: kept aside, or a file system's own, which only root
    reads and which lies at the top of every disk."""
    return is_hidden_folder(name) or name == "lost+found"


def _is_entered_elsewhere(path: str, entered: Entered) -> bool:
    """Return whether a path is a link to a folder whose content another path matches."""
    if not os.path.islink(path.rstrip("/")) or not os.path.isdir(path):
        return False
    status = os.stat(path)
    folder = os.path.join(path, "")
    return entered.get((status.st_dev, status.st_ino), folder) != folder
