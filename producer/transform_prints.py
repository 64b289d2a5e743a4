"""What transforms print in the command itself, which keeps its standard output for data."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout


@contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Wherever a module of transforms is imported or a function of it is called: what it prints
    goes to standard error."""
    with redirect_stdout(sys.stderr):
        yield
