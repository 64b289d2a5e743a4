"""Write JSON documents to standard output, and handle a standard output that is closed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from ringhaul.plain_text import Lines


def json_text(document: object, *, indent: int | None = None) -> Lines:
    """Return the document as `--json` prints it: only printable ASCII and line ends. So it is exact
    on a terminal too, and cannot control it."""
    return Lines(json.dumps(document, indent=indent).replace("\x7f", "\\u007f"))


def print_message(text: str) -> None:
    """Print a line of `--json`. If standard output is closed, drop it: the work continues."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        let_go_of_stdout()


def let_go_of_stdout() -> None:
    """Discard unwritten output: the process would try to flush it on exit, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Redirect prints in the block to standard error. Use it around imports and calls of users'
    transforms."""
    with redirect_stdout(sys.stderr):
        yield
