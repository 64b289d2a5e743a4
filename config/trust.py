"""Which settings files are trusted: whoever writes one has the command's passwords sent to a host.

A settings file names the broker and the files that passwords are read from. One that merely lies in
the current folder may be anybody's: it counts only if nobody else can have written it.
"""

import os
import stat
import sys
from pathlib import Path

_warned: set[str] = set()


def distrust(path: Path) -> str:
    """Return why somebody else may have written the file, empty if nobody can.

    Root and the user may. Write permission for a group is fine for the user's primary group, as
    systems that give each user a group of its own set it by default. A symbolic link counts as
    well as what it leads to.
    """
    for found in (path.lstat(), path.stat()):
        if found.st_uid not in (0, os.geteuid()):
            return "it belongs to another user"
        if stat.S_ISLNK(found.st_mode):
            continue  # the permissions of a link mean nothing
        if found.st_mode & stat.S_IWOTH:
            return "everybody can write it"
        if found.st_mode & stat.S_IWGRP and found.st_gid != os.getegid():
            return "a group can write it"
    return ""


def warn_once(text: str) -> None:
    """Print a warning to stderr, the same one once in a process."""
    if text not in _warned:
        _warned.add(text)
        print(f"warning: {text}", file=sys.stderr, flush=True)
