"""Standard error and standard output show what is printed as text.

Messages hold much that comes from outside. Here is the one door through which all of it goes, so
that none is forgotten; on a pipe, too, as a pager behind it may show it on a terminal. What is
written at once is a line, unless it was made as `Lines`. Data for
programs goes by the streams' own `buffer`, and is exact. Rich draws with control characters of its
own and goes by another door; its texts are made plain where they are drawn.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from config.secrets import mask
from ringhaul.plain_text import Lines, as_message


class Drawn(str):
    """A text of ours with colours, which is written as it is."""

    def __str__(self) -> str:
        return self  # and not a plain copy, which `print` would write


class PlainStream:
    """A text stream that writes control characters of what it is given as visible escapes."""

    def __init__(self, stream: TextIO, hide: Callable[[str], str] = str) -> None:
        """`hide` takes the secrets out of messages; rows of a table are shown as they are."""
        self._hide = hide
        #: Under this name Rich looks for the stream that it writes to itself.
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        size = len(text)
        if not isinstance(text, str):  # click asks by that whether a stream takes bytes
            raise TypeError(f"expected a text, not {type(text).__name__}")
        if not isinstance(text, Drawn):
            said = text if isinstance(text, Lines) else text.removesuffix("\n")
            end = text[len(said) :]
            text = self._hide(as_message(said)) + end
        self.rich_proxied_file.write(text)
        return size

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def show_plain_text() -> None:
    """Call this before anything is printed."""
    sys.stderr = _plain(sys.stderr, mask)
    sys.stdout = _plain(sys.stdout, str)


def show_as_written() -> None:
    """Undo it, for programs of others that run in this process and have colours of their own."""
    sys.stderr = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
    sys.stdout = getattr(sys.stdout, "rich_proxied_file", sys.stdout)


def _plain(stream: TextIO, hide: Callable[[str], str]) -> TextIO:
    return PlainStream(stream, hide)  # type: ignore[return-value]
