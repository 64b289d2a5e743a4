"""Files of the state folder: written whole, readable by their owner only, changed under a lock.

<state_dir>/local.json          where the running stack answers; there only while it runs.
                                Read by `config.settings` when nothing else is configured.
<state_dir>/local/layout.json   nodes, ports and pids; stays when the stack is down, so that
                                the next `up` finds the same data at the same addresses.
<state_dir>/local/stack.lock    held by `up` and `down`.
<state_dir>/local/<address>/    one node: its configuration, data and logs.
<state_dir>/valkey/             Valkey: its configuration, data, log and password.
"""

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from producer.local.errors import LocalStackError


def private_dir(path: Path) -> Path:
    """Make `path` and its parents; `path` itself is 0700."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


def write_private(path: Path, text: str) -> None:
    """Replace `path` by a 0600 file that holds `text`; a reader sees the old or the new, whole."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: dict[str, Any]) -> None:
    """`write_private` of a JSON document."""
    write_private(path, json.dumps(value, indent=2) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the document, None when there is no such file.

    Raises `LocalStackError` that names the file when it holds something else.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise LocalStackError(f"{path} is not JSON: {error}. Delete it and try again.") from error
    if not isinstance(value, dict):
        raise LocalStackError(f"{path} holds no JSON object. Delete it and try again.")
    return value


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path` (made if absent). Waits; the kernel frees it on death."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
