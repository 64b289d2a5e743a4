"""Standard output: when it is gone, and what must not reach it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout


def print_message(text: str) -> None:
    """A line of `--json`. Where nobody reads it any more, what it tells of goes on all the same."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        let_go_of_stdout()


def let_go_of_stdout() -> None:
    """Drop what is still to be written: the end of the process would try, and fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Wherever a module of transforms is imported or a function of it is called: what it prints
    goes to standard error."""
    with redirect_stdout(sys.stderr):
        yield
