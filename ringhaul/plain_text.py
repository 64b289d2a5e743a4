"""Make text from outside safe to show: file names, headers, cells, messages of servers.

A terminal obeys control characters: they move the cursor, change the window's title, or hide
neighbouring text. Marks of writing direction show text in another order than its own. All of them
become visible escapes, such as ``\\x1b``, so that the reader sees what the text holds. Pure.
"""

import json
import re
from collections.abc import Iterable

#: Control characters (C0, DEL, C1), line and paragraph separators, marks and embeddings of writing
#: direction, zero-width characters that hide or join others, surrogates, tags. The joiners of emoji
#: and of Persian (U+200C, U+200D) stay.
_HOSTILE = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"
)
_IN_LINES = re.compile(f"[{_HOSTILE}]")
#: No-break spaces and spaces of a typographer's widths. U+3000 shows by its own width.
_SPACES = re.compile("[\xa0\u1680\u2000-\u200a\u202f\u205f]")
_IN_A_LINE = re.compile(f"[{_HOSTILE}\t\n]")


class Lines(str):
    """A text of several lines made by ringhaul: see `lines_of`. Concatenating it with other text
    gives an ordinary `str`, whose line ends are escaped."""

    def __str__(self) -> str:
        return self  # not an ordinary copy, which `print` and exceptions would show


def lines_of(lines: Iterable[str]) -> Lines:
    """Join the lines of a message. Each stays one line, whatever it holds; `Lines` stay several."""
    return Lines("\n".join(map(as_message, lines)))


def as_message(text: str) -> str:
    """Return a message in the form to show: on one line, unless it was made as `Lines`. So no file
    name or option can start a line that looks like a message of ringhaul."""
    return as_lines(text) if isinstance(text, Lines) else as_line(text)


def as_line(text: str) -> str:
    """Return the text on one line: even line ends and tabs become escapes."""
    return text if text.isprintable() else _IN_A_LINE.sub(_escaped, text)


def as_quoted(text: str) -> str:
    """Return the text of a value on one line, with all but ordinary spaces visible: a value with
    U+00A0 or U+202F is not the number that it looks like."""
    return text if text.isprintable() else _SPACES.sub(_escaped, as_line(text))


def as_lines(text: str) -> str:
    """Return a text of several lines with its LF and tab kept, as in messages of ringhaul."""
    return text if text.isprintable() else _IN_LINES.sub(_escaped, text)


def in_json(text: str) -> str:
    """Return an equivalent JSON text without characters that act on a terminal. In JSON these occur
    only within strings."""
    return text if text.isprintable() else _IN_LINES.sub(_escaped_in_json, text)


def _escaped_in_json(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if match[0] != "\x7f" else "\\u007f"


def _escaped(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]
