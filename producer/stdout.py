"""Standard output that cannot be written any more."""

from __future__ import annotations

import os
import sys


def print_message(text: str) -> None:
    """A line of `--json`. Where nobody reads it any more, what it tells of goes on all the same."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        let_go_of_stdout()


def let_go_of_stdout() -> None:
    """Drop what is still to be written: the end of the process would try, and fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
