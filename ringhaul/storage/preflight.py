"""Check the inputs and the output of a job in a separate process: run as a script.

A stat on a dead network mount returns when the mount comes back, if ever, and no signal ends it.
So the caller starts this process, reads what it has written, and abandons it after a while. For
paths it needs no other package, and is ready in some 30 ms.

Standard input: a request as JSON, see `request`. Standard output, as lines of JSON: `{"at":
FOLDER}` when it goes to another folder, and at the end `{"wrong": [[NAME, WHY], ...]}`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

#: A file that another host has just created may not be visible here at once.
PROBE_WAIT_S = 1.5
#: Number of problems after which the check ends: a host may see none of a thousand files.
WRONG_MAX = 20
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def request(
    sources: Sequence[tuple[str, int, str]], folder: str = "", probe: str = ""
) -> dict[str, Any]:
    """Return what to check. `sources`: paths or URLs, bytes, and versions as in `SourceFile`.

    `folder`, `probe`: a folder that must be writable, and a file that must be in it (none behind a
    URL). The caller adds `access`, what this process may open behind URLs, and `sys_path`.
    """
    return {"sources": list(sources), "folder": folder, "probe": probe}


def needs_packages(request: dict[str, Any]) -> bool:
    """Return whether there are URLs in a request, or limits: those need more than Python."""
    if _roots(request):
        return True
    names = [request["folder"], *(path for path, _, _ in request["sources"])]
    return any("://" in name for name in names)


def check_places(request: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what is wrong: (path or URL, why); empty if all is well."""
    roots = _roots(request)
    if needs_packages(request):
        from ringhaul.storage.access import Access, set_access

        set_access(Access(**request["access"]))
    wrong = []
    at = ""
    for path, size_bytes, version in request["sources"]:
        if os.path.dirname(path) != at:
            at = os.path.dirname(path)
            _say({"at": at})
        why = _outside(path, roots) or _look_at_source(path, size_bytes, version)
        if why:
            wrong.append((path, why))
            if len(wrong) == WRONG_MAX:
                break
    if request["folder"]:
        _say({"at": request["folder"]})
        why = _outside(request["folder"], roots) or _look_at_folder(
            request["folder"], request["probe"]
        )
        if why:
            wrong.append((request["folder"], why))
    return wrong


def _roots(request: dict[str, Any]) -> Sequence[str]:
    roots: Sequence[str] = request.get("access", {}).get("allowed_roots", ())
    return roots


def _outside(name: str, roots: Sequence[str]) -> str:
    """Return why the place is not opened for jobs; nothing in it is examined."""
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
    from ringhaul.storage.file_version import unlike

    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            status = os.fstat(opened)  # a network mount asks its server on opening
        finally:
            os.close(opened)
    except OSError as error:
        return error.strerror or str(error)
    return unlike(size_bytes, version, status)


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
            return f"{there}: what the command writes into it is not visible"
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
    """Return a message without the URL at its beginning, which is shown anyway."""
    return text.removeprefix(url).removeprefix(": ")


def _say(message: dict[str, Any]) -> None:
    # Unbuffered: the reader wants to know where this hangs.
    os.write(1, json.dumps(message).encode() + b"\n")


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    # Without site-packages, a path need not lead to this package.
    sys.path[:] = [*request["sys_path"], _ROOT]
    _say({"wrong": check_places(request)})


if __name__ == "__main__":
    main()
