"""The inputs and the output of a job, looked at from one host.

This imports little, because `storage.preflight` has to be quick; `url_places` looks behind URLs.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from typing import Any

from ringhaul.storage.access import Access, set_access
from ringhaul.storage.file_version import unlike
from ringhaul.storage.roots import OutsideRoots, check_roots

#: A file that another host has just created may not be visible here at once.
PROBE_WAIT_S = 1.5
#: Number of problems after which the check ends: a host may see none of a thousand files.
WRONG_MAX = 20


def check_places(request: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what is wrong: (path or URL, why); empty if all is well."""
    roots: Sequence[str] = request.get("access", {}).get("allowed_roots", ())
    if "access" in request:
        set_access(Access(**request["access"]))
    wrong = []
    at = ""
    for path, size_bytes, version in request["sources"]:
        if os.path.dirname(path) != at:
            at = os.path.dirname(path)
            say({"at": at})
        why = _outside(path, roots) or _look_at_source(path, size_bytes, version)
        if why:
            wrong.append((path, why))
            if len(wrong) == WRONG_MAX:
                break
    if request["folder"]:
        say({"at": request["folder"]})
        why = _outside(request["folder"], roots) or _look_at_folder(
            request["folder"], request["probe"]
        )
        if why:
            wrong.append((request["folder"], why))
    return wrong


def _outside(name: str, roots: Sequence[str]) -> str:
    """Return why the place is not opened for jobs; nothing in it is examined."""
    if not roots:
        return ""
    try:
        check_roots(name, roots)
    except OutsideRoots as error:
        return str(error).removeprefix(name).removeprefix(": ")
    return ""


def _look_at_source(path: str, size_bytes: int, version: str) -> str:
    if "://" in path:
        from ringhaul.storage.url_places import look_at_url  # not for plain paths: see above

        return look_at_url(path, size_bytes, version)
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            status = os.fstat(opened)  # a network mount asks its server on opening
        finally:
            os.close(opened)
    except OSError as error:
        return error.strerror or str(error)
    return unlike(size_bytes, version, status)


def _look_at_folder(folder: str, probe: str) -> str:
    if "://" in folder:
        from ringhaul.storage.url_places import look_at_store  # not for plain paths: see above

        return look_at_store(folder)
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


def say(message: dict[str, Any]) -> None:
    """Write a message as one line to standard output."""
    # Unbuffered: the reader wants to know where this hangs.
    os.write(1, json.dumps(message).encode() + b"\n")
