"""Which files of the current folder are taken although nobody named them.

A folder may be anybody's: `/tmp`, an unpacked archive, a share. A settings file in it sends
passwords where it likes, and a schedule file says what is run. So one that is found there is only
taken if it can be from nobody but this user or root, as git does with folders (`safe.directory`).
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
import sys
from pathlib import Path

#: Files that were told of, so that each is told of once in a process.
_told: set[str] = set()


def is_taken(path: Path, how: str) -> bool:
    """Whether a file of the current folder is there and can be taken. A warning on standard error
    tells of one that cannot. `how`: to have it read all the same, such as `--config FILE`."""
    if not path.is_file():
        return False
    why = doubt(path)
    if why is not None:
        _tell(
            f"{path} is not read: {why}; if you trust it, `chown` it and its folder to yourself "
            f"and `chmod go-w` them, or name it by {how}"
        )
    return why is None


def warn_of_writable(path: Path) -> None:
    """Tell of a file that was named and that others can change. Whose it is, is for those to judge
    who named it: settings of a service may belong to whoever deploys it."""
    try:
        file = path.stat()
        if not stat.S_ISREG(file.st_mode) or os.statvfs(path).f_flag & os.ST_RDONLY:
            return  # a pipe, or a file of a read-only mount, which has odd modes in containers
        folders = [(folder, folder.stat()) for folder in _folders(path)]
    except OSError:  # told when it is read
        return
    if file.st_mode & stat.S_IWOTH:
        _tell(f"every user of this host can change {path}: `chmod o-w` it")
    elif _others_write(file):
        _tell(f"other users can change {path}: `chmod go-w` it")
    for folder, found in folders:
        if _others_write(found) and not found.st_mode & stat.S_ISVTX:
            _tell(f"other users can put another file in place of {path}: `chmod go-w {folder}`")


def doubt(path: Path) -> str | None:
    """Why a file may be somebody else's, in words; None: it is this user's or root's, and nobody
    else can change it or put another one in its place."""
    ours = (os.geteuid(), 0)
    try:
        link, file = path.lstat(), path.stat()
        folders = [folder.stat() for folder in _folders(path)]
    except OSError as error:
        return f"it cannot be looked at: {error.strerror}"
    if file.st_uid not in ours or link.st_uid not in ours:
        return "it belongs to another user"
    if _others_write(file):
        return "other users can change it"
    for folder in folders:
        if folder.st_uid not in ours:
            return "its folder belongs to another user"
        # In a sticky folder, such as /tmp, a file is removed by its owner or the folder's alone.
        if _others_write(folder) and not folder.st_mode & stat.S_ISVTX:
            return "other users can put another file in its place"
    return None


def _folders(path: Path) -> list[Path]:
    """The folder that a file is in, and that in which it is where a link leads to it."""
    return list(dict.fromkeys((path.parent.resolve(), path.resolve().parent)))


def _others_write(found: os.stat_result) -> bool:
    """Whether users other than the owner can write a file or into a folder, by its mode."""
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not _is_private(found.st_gid)


def _is_private(gid: int) -> bool:
    """Whether a group is this user's alone. Systems that give each user a group of the same name
    set group write permission by default. Which users have it for their first one is not looked
    up: a directory service may know 100,000."""
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:  # as for the user of a container
        return False
    return (
        user.pw_gid == gid and group.gr_name == user.pw_name and {*group.gr_mem} <= {user.pw_name}
    )


def _tell(text: str) -> None:
    if text not in _told:
        _told.add(text)
        print(f"warning: {text}", file=sys.stderr)
