"""Text from outside, made safe to show: file names, headers, cells, servers' words.

A terminal obeys control characters: they move the cursor, change the window's title, hide what
stands beside them. Marks of writing direction show text in another order than it has. All of them
become visible escapes, such as ``\\x1b``, so that what is seen is what is there. Pure.
"""

import json
import re
from collections.abc import Iterable

#: Control characters (C0, DEL, C1), separators of lines and paragraphs, marks and embeddings of
#: writing direction, characters without a width that hide or join others, surrogates, tags. Joiners
#: of emoji and of Persian (U+200C, U+200D) stay.
_HOSTILE = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"
)
_IN_LINES = re.compile(f"[{_HOSTILE}]")
_IN_A_LINE = re.compile(f"[{_HOSTILE}\t\n]")


class Lines(str):
    """A text of several lines that we made: see `lines_of`. Concatenating it with other text gives
    an ordinary one, whose line ends count as anybody's."""

    def __str__(self) -> str:
        return self  # and not an ordinary copy, which `print` and exceptions would show


def lines_of(lines: Iterable[str]) -> Lines:
    """Lines of a message, each of which stays one whatever is in it; other `Lines` stay several."""
    return Lines("\n".join(map(as_message, lines)))


def as_message(text: str) -> str:
    """Return a message as it is shown: on one line, unless it was made as `Lines`. So no file name
    and no option can begin a line that looks like a message of ours."""
    return as_lines(text) if isinstance(text, Lines) else as_line(text)


def as_line(text: str) -> str:
    """Return the text on one line: line ends and tabs are shown as escapes, too."""
    return text if text.isprintable() else _IN_A_LINE.sub(_escaped, text)


def as_lines(text: str) -> str:
    """Return text of several lines, as messages of ours have them: LF and tab stay."""
    return text if text.isprintable() else _IN_LINES.sub(_escaped, text)


def in_json(text: str) -> str:
    """Return a JSON text that means the same, without characters that act on a terminal. In JSON
    they stand in strings alone."""
    return text if text.isprintable() else _IN_LINES.sub(_escaped_in_json, text)


def _escaped_in_json(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if match[0] != "\x7f" else "\\u007f"


def _escaped(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]
