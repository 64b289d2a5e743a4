"""Names that readers of folders do not take for data, as Hadoop, Spark and pandas have them.

What begins with `_` or `.` is kept aside: attempts that were not committed (`_temporary`), marks
(`_SUCCESS`), logs of tables (`_delta_log`), files that are still being written. Folders named after
values, such as `_day=1`, are data.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable
from fnmatch import fnmatchcase

#: The list of an unload's files, which marks a folder that an unload has completed.
MANIFEST = "_manifest.json"
#: The names under which the list is read, best first: an earlier ringhaul wrote the second name.
MANIFESTS = (MANIFEST, "manifest.json")

#: How names that are kept aside begin.
MARKS = ("_", ".")
#: The folder in which a table format keeps its log -> the format.
TABLE_LOGS = {"_delta_log": "Delta Lake", ".hoodie": "Apache Hudi"}
#: The format whose log is in a folder `metadata`.
ICEBERG = "Apache Iceberg"


def is_hidden_file(name: str) -> bool:
    """Return whether a file of this name is kept aside."""
    return name.startswith(MARKS)


def is_hidden_folder(name: str) -> bool:
    """Return whether a folder of this name is kept aside."""
    column, equals, _ = name.partition("=")
    return name.startswith(MARKS) and not (equals and column)


def is_hidden(names: Iterable[str]) -> bool:
    """Return whether a file, or one of the folders that precede it in `names`, is kept aside."""
    *folders, file = names
    return is_hidden_file(file) or any(map(is_hidden_folder, folders))


def is_hidden_below(folder: str, path: str, is_file: bool) -> bool:
    """Return whether a path below a folder is kept aside, itself or by a folder above it."""
    names = path[len(folder) :].strip("/").split("/")
    return is_hidden(names) if is_file else any(map(is_hidden_folder, names))


def hides(pattern: str, path: str, is_file: bool) -> bool:
    """Return whether what a glob matches is kept aside, and the glob does not begin like it there.

    `path`: without a slash at its end.
    """
    names = path.strip("/").split("/")
    aside = is_hidden(names) if is_file else any(map(is_hidden_folder, names))
    return aside and not matches(pattern.strip("/"), "/".join(names))


def matches(pattern: str, path: str) -> bool:
    """Return whether a glob matches this path of a file, whatever is on the disk, with `**` for
    folders at any depth. Wildcards do not match what is kept aside, unless they `reveal` it."""
    names = path.split("/")
    last = len(names) - 1
    aside = [is_hidden_folder(name) for name in names[:last]] + [is_hidden_file(names[last])]
    ends = {0}  # how many names the parts of the pattern so far may stand for
    for part in pattern.split("/"):
        if part == "**":
            for end in sorted(ends):
                while end <= last and not aside[end]:
                    end += 1
                    ends.add(end)
        else:
            ends = {
                end + 1
                for end in ends
                if end <= last and _is_like(names[end], part, aside=aside[end])
            }
    return len(names) in ends


def _is_like(name: str, part: str, *, aside: bool) -> bool:
    if not glob.has_magic(part):
        return name == part
    return (not aside or reveals(part, name)) and fnmatchcase(name, part)


def reveals(part: str, name: str) -> bool:
    """Return whether a part of a glob begins as a name does that is kept aside."""
    return part.startswith(MARKS) and part[0] == name[0]


def is_iceberg_metadata(folder: str, name: str) -> bool:
    """Return whether a file in a folder of this name describes a table of Apache Iceberg."""
    return folder == "metadata" and name.endswith((".metadata.json", ".metadata.json.gz"))
