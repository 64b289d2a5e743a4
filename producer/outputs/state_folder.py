"""Error messages for a state folder that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ringhaul.errors import UsageError


@contextmanager
def using_state(folder: Path) -> Iterator[None]:
    """Raise `UsageError` for an `OSError` in the block, which must be about `folder`."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"the state folder {folder} cannot be used: {error.strerror or error}; "
            "set another one with RINGHAUL_STATE_DIR"
        ) from error
