"""Standard error and standard output that escape control characters in what is printed.

Messages contain much text from outside. All of it passes through these streams, so that none is
forgotten; on a pipe too, since a pager behind it may show the text on a terminal. Each write counts
as one line, unless its text is a `Lines`. Data for programs goes through the streams' `buffer` and
is not changed. Rich writes its own control characters and bypasses these streams; its texts are
escaped where they are drawn. A live display needs `console_for` and `escape_beside_live`: it puts
itself between these streams and the code that prints.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TextIO, cast

from config.secrets import mask
from ringhaul.plain_text import Lines, as_message

if TYPE_CHECKING:
    from rich.console import Console


class Drawn(str):
    """A coloured text of our own, which is written unchanged."""

    def __str__(self) -> str:
        return self  # not a plain `str` copy, which `print` would write


class PlainStream:
    """A text stream that writes control characters as visible escapes."""

    def __init__(self, stream: TextIO, hide: Callable[[str], str] = str) -> None:
        """`hide` masks secrets in messages; rows of a table are not masked."""
        self._hide = hide
        #: Rich looks up the underlying stream under this name.
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        size = len(text)
        if not isinstance(text, str):  # click tests with this whether a stream accepts bytes
            raise TypeError(f"expected a text, not {type(text).__name__}")
        if not isinstance(text, Drawn):
            body = text if isinstance(text, Lines) else text.removesuffix("\n")
            end = text[len(body) :]
            text = self._hide(as_message(body)) + end
        self.rich_proxied_file.write(text)
        return size

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def show_plain_text() -> None:
    """Install the escaping streams. Call this before anything is printed."""
    sys.stderr = _plain(sys.stderr, mask)
    sys.stdout = _plain(sys.stdout, str)


def show_as_written() -> None:
    """Restore the original streams, for other programs in this process that print colours."""
    sys.stderr = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
    sys.stdout = getattr(sys.stdout, "rich_proxied_file", sys.stdout)


def console_for(stream: TextIO) -> Console:
    """Return a console for a live display on a standard stream.

    It writes to the stream itself. Rich looks behind one stream only, and would take ours for the
    terminal once its display stands in front of it.
    """
    from rich.console import Console

    return Console(file=getattr(stream, "rich_proxied_file", stream), highlight=False)


def escape_beside_live() -> None:
    """Escape also what is printed beside a live display. Call this once the display has started.

    The display restores the streams at its end.
    """
    from rich.file_proxy import FileProxy

    if isinstance(sys.stderr, FileProxy):
        sys.stderr = _plain(cast(TextIO, sys.stderr), mask)
    if isinstance(sys.stdout, FileProxy):
        sys.stdout = _plain(cast(TextIO, sys.stdout), str)


def _plain(stream: TextIO, hide: Callable[[str], str]) -> TextIO:
    return PlainStream(stream, hide)  # type: ignore[return-value]
