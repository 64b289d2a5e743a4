"""Which files of the current folder are taken although nobody named them.

A folder may be anybody's: `/tmp`, an unpacked archive, a share. A settings file in it sends
passwords where it likes, and a schedule file says what is run. So one that is found there is only
taken if it can be from nobody but this user or root, as git does with folders (`safe.directory`).
"""

from __future__ import annotations

import os
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
            f"{path} is not read: {why}; if you trust it, `chown` it to yourself and "
            f"`chmod go-w` it, or name it by {how}"
        )
    return why is None


def warn_of_writable(path: Path) -> None:
    """Tell of a file that was named and that every user can change."""
    try:
        mode = path.stat().st_mode
    except OSError:  # told when it is read
        return
    if stat.S_ISREG(mode) and mode & stat.S_IWOTH:
        _tell(f"every user of this host can change {path}: `chmod o-w` it")


def doubt(path: Path) -> str | None:
    """Why a file may be somebody else's, in words; None: it is this user's or root's, and nobody
    else can change it or put another one in its place."""
    ours = (os.geteuid(), 0)
    try:
        link, file, folder = path.lstat(), path.stat(), path.parent.stat()
    except OSError as error:
        return f"it cannot be looked at: {error.strerror}"
    if file.st_uid not in ours or link.st_uid not in ours:
        return "it belongs to another user"
    # Systems that give each user a group set group write permission by default.
    others = stat.S_IWOTH | (0 if file.st_gid == os.getegid() else stat.S_IWGRP)
    if file.st_mode & others:
        return "other users can change it"
    if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
        return "other users can put another file in its place"
    return None


def _tell(text: str) -> None:
    if text not in _told:
        _told.add(text)
        print(f"warning: {text}", file=sys.stderr)
