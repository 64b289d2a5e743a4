"""Standard output: JSON documents on it, and what becomes of it when it cannot be written."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from ringhaul.plain_text import Lines


def json_text(document: object, *, indent: int | None = None) -> Lines:
    """The document as `--json` shows it: of printable ASCII characters and line ends alone. So it
    is exact on a terminal, too, and nothing in it acts there."""
    return Lines(json.dumps(document, indent=indent).replace("\x7f", "\\u007f"))


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
