"""A look at the inputs and the output of a job, in a process of its own: run as a script.

A stat on a dead network mount returns when the mount comes back, if ever, and no signal ends it.
So the one who wants to know starts this process, looks at what it has written, and leaves it alone
after a while. For paths it needs nothing but Python, and is there in some 30 ms.

Standard input: a request as JSON, see `request`. Standard output, as lines of JSON: `{"at":
FOLDER}` whenever it goes to another folder, and at the end `{"wrong": [[NAME, WHY], ...]}`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

#: A file that another host made a moment ago may not be known here at once.
PROBE_WAIT_S = 1.5
#: A host that sees nothing of a thousand files has told enough.
WRONG_MAX = 20


def request(
    sources: Sequence[tuple[str, int, str]], folder: str = "", probe: str = ""
) -> dict[str, Any]:
    """What to look at. `sources`: paths or URLs, bytes, and versions as in `SourceFile`.

    `folder`, `probe`: a folder that must be writable, and a file that must be in it (none behind a
    URL). Whoever starts this process adds `access`, what it may open behind URLs, and `sys_path`.
    """
    return {"sources": list(sources), "folder": folder, "probe": probe}


def needs_packages(asked: dict[str, Any]) -> bool:
    """Whether there are URLs among what is asked, or limits to it: those need more than Python."""
    if _roots(asked):
        return True
    names = [asked["folder"], *(path for path, _, _ in asked["sources"])]
    return any("://" in name for name in names)


def look(asked: dict[str, Any]) -> list[tuple[str, str]]:
    """What is wrong: (path or URL, why), in words; empty if all is as it should be."""
    roots = _roots(asked)
    if needs_packages(asked):
        from ringhaul.storage.access import Access, set_access

        set_access(Access(**asked["access"]))
    wrong = []
    at = ""
    for path, size_bytes, version in asked["sources"]:
        if os.path.dirname(path) != at:
            at = os.path.dirname(path)
            _say({"at": at})
        why = _outside(path, roots) or _look_at_source(path, size_bytes, version)
        if why:
            wrong.append((path, why))
            if len(wrong) == WRONG_MAX:
                break
    if asked["folder"]:
        _say({"at": asked["folder"]})
        why = _outside(asked["folder"], roots) or _look_at_folder(asked["folder"], asked["probe"])
        if why:
            wrong.append((asked["folder"], why))
    return wrong


def _roots(asked: dict[str, Any]) -> Sequence[str]:
    roots: Sequence[str] = asked.get("access", {}).get("allowed_roots", ())
    return roots


def _outside(name: str, roots: Sequence[str]) -> str:
    """Why the place is not opened for jobs, whatever is there; nothing of it is looked at."""
    if not roots:
        return ""
    from ringhaul.storage.roots import OutsideRoots, check_roots

    try:
        check_roots(name, roots)
    except OutsideRoots as error:
        return _without(name, str(error))
    return ""


def _look_at_source(path: str, size_bytes: int, version: str) -> str:
    if "://" in path:
        return _look_at_url(path, size_bytes, version)
    try:
        found_bytes = os.stat(path).st_size
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    except OSError as error:
        return error.strerror or str(error)
    if found_bytes != size_bytes:
        return f"{found_bytes:,} bytes there, {size_bytes:,} here"
    return ""


def _look_at_url(url: str, size_bytes: int, version: str) -> str:
    from ringhaul.errors import RinghaulError
    from ringhaul.storage.remote import RemoteFile, check_unchanged

    try:
        check_unchanged(RemoteFile(url, size_bytes, version))
    except RinghaulError as error:
        return _without(url, str(error))
    return ""


def _look_at_folder(folder: str, probe: str) -> str:
    if "://" in folder:
        return _look_at_store(folder)
    give_up = time.monotonic() + PROBE_WAIT_S
    while probe and not os.path.lexists(os.path.join(folder, probe)):
        if time.monotonic() > give_up:
            there = "is another folder there" if os.path.isdir(folder) else "is not there"
            return f"{there}: what the command writes into it does not show"
        time.sleep(0.05)
    mine = os.path.join(folder, f"{probe or '.look'}.{os.uname().nodename}.{os.getpid()}")
    try:
        os.close(os.open(mine, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.unlink(mine)
    except OSError as error:
        return f"cannot be written there: {error.strerror or error}"
    return ""


def _look_at_store(url: str) -> str:
    from ringhaul.errors import RinghaulError
    from ringhaul.storage.folders import try_writing

    try:
        try_writing(url)
    except RinghaulError as error:
        return _without(url, str(error))
    return ""


def _without(url: str, text: str) -> str:
    """Words that begin with the URL, which is told anyway."""
    return text.removeprefix(url).removeprefix(": ")


def _say(message: dict[str, Any]) -> None:
    # At once: whoever reads it wants to know where this hangs.
    os.write(1, json.dumps(message).encode() + b"\n")


def main() -> None:
    asked = json.loads(sys.stdin.buffer.read())
    sys.path[:] = asked["sys_path"]
    _say({"wrong": look(asked)})


if __name__ == "__main__":
    main()
