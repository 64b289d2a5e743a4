"""Decide whether to trust a file found in the current folder that was not given by name.

A folder may be anyone's: `/tmp`, an unpacked archive, a share. A settings file in it could send
passwords anywhere, and a schedule file could run anything. So a file found there is used only if no
one but this user or root can have written it, as git does with folders (`safe.directory`).
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
import sys
from pathlib import Path

#: Warnings already shown, so that each appears once in a process.
_shown: set[str] = set()


def is_taken(path: Path, how: str) -> bool:
    """Return whether a file of the current folder exists and can be trusted; warn on standard error
    if it cannot. `how`: the way to have it read anyway, such as `--config FILE`."""
    if not path.is_file():
        return False
    why = why_untrusted(path)
    if why is not None:
        _warn(
            f"{path} is not read: {why}; if you trust it, `chown` it and its folder to yourself "
            f"and `chmod go-w` them, or name it by {how}"
        )
    return why is None


def warn_of_writable(path: Path) -> None:
    """Warn about a file given by name that other users can change. Its owner is not checked:
    a service's settings may belong to the user who deploys it."""
    try:
        file = path.stat()
        if not stat.S_ISREG(file.st_mode) or os.statvfs(path).f_flag & os.ST_RDONLY:
            return  # a pipe, or on a read-only mount, where modes in containers mean little
        folders = [(folder, folder.stat()) for folder in _folders(path)]
    except OSError:  # reported when the file is read
        return
    if file.st_mode & stat.S_IWOTH:
        _warn(f"every user of this host can change {path}: `chmod o-w` it")
    elif _others_write(file):
        _warn(f"other users can change {path}: `chmod go-w` it")
    for folder, found in folders:
        if _others_write(found) and not found.st_mode & stat.S_ISVTX:
            _warn(f"other users can replace {path}: `chmod go-w {folder}`")


def why_untrusted(path: Path) -> str | None:
    """Return why a file may be from another user, as a phrase; None if it belongs to this user or
    root, and no one else can change or replace it."""
    ours = (os.geteuid(), 0)
    try:
        link, file = path.lstat(), path.stat()
        folders = [folder.stat() for folder in _folders(path)]
    except OSError as error:
        return f"it cannot be checked: {error.strerror}"
    if file.st_uid not in ours or link.st_uid not in ours:
        return "it belongs to another user"
    if _others_write(file):
        return "other users can change it"
    for folder in folders:
        if folder.st_uid not in ours:
            return "its folder belongs to another user"
        # In a sticky folder such as /tmp, only the owners of file and folder can remove a file.
        if _others_write(folder) and not folder.st_mode & stat.S_ISVTX:
            return "other users can replace it"
    return None


def _folders(path: Path) -> list[Path]:
    """Return the folder of a path and, if it is a link, the folder of its target."""
    return list(dict.fromkeys((path.parent.resolve(), path.resolve().parent)))


def _others_write(found: os.stat_result) -> bool:
    """Return whether its mode lets users other than the owner write to a file or folder."""
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not _is_private(found.st_gid)


def _is_private(gid: int) -> bool:
    """Return whether a group is private to this user. Systems that give each user a group of the
    same name set group write permission by default. Other users' primary groups are not searched:
    a directory service may have 100,000 users."""
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:  # no such entry, as for many users of containers
        return False
    return (
        user.pw_gid == gid and group.gr_name == user.pw_name and {*group.gr_mem} <= {user.pw_name}
    )


def _warn(text: str) -> None:
    if text not in _shown:
        _shown.add(text)
        print(f"warning: {text}", file=sys.stderr)
