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
from collections.abc import Sequence
from typing import Any

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
    """Return whether a request has URLs or limits, which need more than Python."""
    if _roots(request):
        return True
    names = [request["folder"], *(path for path, _, _ in request["sources"])]
    return any("://" in name for name in names)


def _roots(request: dict[str, Any]) -> Sequence[str]:
    roots: Sequence[str] = request.get("access", {}).get("allowed_roots", ())
    return roots


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    # Without site-packages, a path need not lead to this package.
    sys.path[:] = [*request["sys_path"], _ROOT]
    from ringhaul.storage.places import check_places, say  # only now it is there

    say({"wrong": check_places(request)})


if __name__ == "__main__":
    main()
