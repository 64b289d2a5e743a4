"""Which paths of this host a glob matches.

A folder is entered once, whatever links lead to it: Python's `glob` goes round a circle of links
until the system refuses, finds each file 41 times by then, and with two circles does not end.
"""

import glob
import os
from collections.abc import Iterator
from itertools import chain

#: Device and inode of each folder that was entered, and the path by which it was.
_Entered = dict[tuple[int, int], str]


def expand(pattern: str) -> list[str]:
    """The paths that a glob matches, sorted; `**` stands for folders at any depth, or none.

    Links to folders are followed. Names that begin with a dot are matched by none of the
    wildcards. What cannot be read is passed over.
    """
    return sorted(_expand(pattern))


def _expand(pattern: str) -> set[str]:
    parts = pattern.split("/")
    if "**" not in parts:
        return set(glob.glob(pattern))
    at = parts.index("**")
    while parts[at + 1 : at + 2] == ["**"]:  # as one of them
        del parts[at]
    head = "".join(f"{part}/" for part in parts[:at])
    rest = "/".join(parts[at + 1 :])
    found = set[str]()
    entered: _Entered = {}
    for root in sorted(glob.glob(head), key=_by_link) if glob.has_magic(head) else [head]:
        for folder in _folders(root, entered):
            if at + 1 == len(parts):  # everything below, and where that begins
                found |= {folder} if folder == root and root else set()
                found.update(glob.glob(f"{glob.escape(folder)}*"))
            else:
                found |= _expand(glob.escape(folder) + rest)
    return {path for path in found if not _is_entered_elsewhere(path, entered)}


def _by_link(path: str) -> tuple[bool, str]:
    """Sorts links behind what they may lead to."""
    return os.path.islink(path.rstrip("/")), path


def _folders(root: str, entered: _Entered) -> Iterator[str]:
    """A folder and those below, each with a slash at its end; of the working directory: "".

    Links come last: a folder that is below by itself is entered there, and not by a link to it.
    """
    top = root or "./"
    starts = [top]
    while starts:
        links: list[str] = []
        for here, folders, _ in chain.from_iterable(map(os.walk, starts)):
            folder = os.path.join(here, "")[len(top) - len(root) :]
            try:
                status = os.stat(here)
            except OSError:
                folders.clear()
                continue
            if entered.setdefault((status.st_dev, status.st_ino), folder) != folder:
                folders.clear()
                continue
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            below = (os.path.join(here, name) for name in folders)
            links.extend(path for path in below if os.path.islink(path))
            yield folder
        starts = sorted(links)


def _is_entered_elsewhere(path: str, entered: _Entered) -> bool:
    """Whether a path is a link to a folder whose content is matched by another path."""
    if not os.path.islink(path.rstrip("/")) or not os.path.isdir(path):
        return False
    status = os.stat(path)
    folder = os.path.join(path, "")
    return entered.get((status.st_dev, status.st_ino), folder) != folder
