"""Standard error, and standard output on a terminal, show what is printed as text.

Messages hold much that comes from outside. Here is the one door through which all of it goes, so
that none is forgotten. Data for programs is left alone: on standard output a pipe or a file gets
what was written. Rich draws with control characters of its own and goes by another door; its texts
are made plain where they are drawn.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TextIO

from ringhaul.plain_text import as_lines


class PlainStream:
    """A text stream that writes control characters of what it is given as visible escapes."""

    def __init__(self, stream: TextIO) -> None:
        #: Under this name Rich looks for the stream that it writes to itself.
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(as_lines(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def show_plain_text() -> None:
    """Call this before anything is printed."""
    sys.stderr = _plain(sys.stderr)
    if sys.stdout.isatty():
        sys.stdout = _plain(sys.stdout)


def show_as_written() -> None:
    """Undo it, for programs of others that run in this process and have colours of their own."""
    sys.stderr = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
    sys.stdout = getattr(sys.stdout, "rich_proxied_file", sys.stdout)


def _plain(stream: TextIO) -> TextIO:
    return PlainStream(stream)  # type: ignore[return-value]
