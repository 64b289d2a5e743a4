"""The command's state folder, where it cannot be used: told in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ringhaul.errors import UsageError


@contextmanager
def using_state(folder: Path) -> Iterator[None]:
    """Raise `UsageError` for an `OSError` of the block, which is about `folder`."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"the state folder {folder} cannot be used: {error.strerror or error}; "
            "name another one with RINGHAUL_STATE_DIR"
        ) from error
