"""Files of the state folder: replaced atomically, readable by the owner only, guarded by a lock.

<state_dir>/local.json          addresses of the running stack; exists only while it runs.
                                Read by `config.settings` if nothing else is configured.
<state_dir>/local/layout.json   nodes, ports and pids; stays while the stack is down, so that
                                the next `up` finds the same data at the same addresses.
<state_dir>/local/stack.lock    held by `up` and `down`.
<state_dir>/local/<address>/    one node: its configuration, data and logs.
<state_dir>/valkey/             Valkey: its configuration, data, log and password.
"""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from producer.local.errors import LocalStackError
from ringhaul.new_file import replace_file


def private_dir(path: Path) -> Path:
    """Create the folder `path` and its parents; set the mode of `path` to 0700. Return `path`."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


def write_private(path: Path, text: str) -> None:
    """Write `text` to `path` with mode 0600, atomically: readers see the old or the new file."""
    with replace_file(path, mode=0o600) as file:
        file.write(text.encode())


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON document with `write_private`."""
    write_private(path, json.dumps(value, indent=2) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if the file does not exist.

    Raises `LocalStackError`, which names the file, if it holds anything else.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise LocalStackError(f"{path} is not JSON: {error}. Delete it and try again.") from error
    if not isinstance(value, dict):
        raise LocalStackError(f"{path} does not hold a JSON object. Delete it and try again.")
    return value


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for an exclusive lock on `path` (created if missing) and hold it in the block.

    The kernel releases it if the process dies.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
