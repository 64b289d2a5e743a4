"""Find what a user may not expect of files that were found: others were left out because their
names begin with an underscore, or they belong to a table whose log says which of them count.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator

from ringhaul.formats.suffixes import plain_name, suffixes_of
from ringhaul.sources.find import local_path
from ringhaul.sources.globs import expand
from ringhaul.storage.hidden import ICEBERG, MANIFESTS, TABLE_LOGS
from ringhaul.storage.remote import is_remote

_MARK = "_"


def left_out(args: Iterable[str], file_format: str = "auto") -> list[str]:
    """Return files in folders of this host and among the matches of globs, not those further below,
    whose suffixes show a format and that `find_sources` leaves out."""
    suffixes = suffixes_of(file_format)
    found: dict[str, None] = {}
    for arg in args:
        if not is_remote(arg):
            found |= dict.fromkeys(sorted(_left_out_of(local_path(arg), suffixes)))
    return list(found)


def find_tables(paths: Iterable[str]) -> dict[str, str]:
    """Return the folders on this host that are tables of another format, each with the format, and
    to which files belong. `find_sources` refuses such a folder, but not a glob or a file in it."""
    folders = {os.path.dirname(path) for path in paths if not is_remote(path)}
    roots = set[str]()
    for folder in folders:
        while "=" in os.path.basename(folder):  # named after a value
            folder = os.path.dirname(folder)
        roots.add(folder)
    found: dict[str, str] = {}
    for root in sorted(roots):
        for log, table_format in TABLE_LOGS.items():
            if os.path.isdir(os.path.join(root, log)):
                found[root] = table_format
        table, name = os.path.split(root)
        if name == "data" and glob.glob(f"{glob.escape(table)}/metadata/*.metadata.json"):
            found[table] = ICEBERG
    return found


def _left_out_of(path: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    if os.path.isdir(path):
        names = os.listdir(path)
        if not {*MANIFESTS} & {*names}:
            paths = (os.path.join(path, name) for name in names if name.startswith(_MARK))
            yield from _data(paths, suffixes)
    elif glob.has_magic(path) and "**" not in path and not os.path.lexists(path):
        pattern_names = (one for one in glob.glob(path) if os.path.basename(one).startswith(_MARK))
        candidates = list(_data(pattern_names, suffixes))
        yield from {*candidates} - {*expand(path)} if candidates else ()


def _data(paths: Iterable[str], suffixes: tuple[str, ...]) -> Iterator[str]:
    for path in paths:
        name = os.path.basename(path)
        if name not in MANIFESTS and plain_name(name).endswith(suffixes) and os.path.isfile(path):
            yield path
