"""Names of columns as CQL writes them: lower case without quotes, as they are in double quotes.

Pure.
"""

from __future__ import annotations

import re

from ringhaul.errors import UsageError

#: Up to the next comma that is not in quotes. A quote that nothing closes is a character.
_PART = re.compile(r'(?:[^",]++|"[^"]*+"|"(?=[^"]*+\Z))*+')
_QUOTED = re.compile(r'"((?:[^"]++|"")++)"')


def listed_names(text: str | None, option: str) -> list[str]:
    """`id, "a,b"` in its parts as they stand there; empty ones are dropped. None: no parts.

    Raises `UsageError` for a text without any: an empty variable of a shell must not mean all.
    """
    if text is None:
        return []
    parts = [part for found in _PART.findall(text) if (part := found.strip())]
    if not parts:
        raise UsageError(f"{option} {text!r} names no column: give some, or leave it out")
    return parts


def read_names(text: str | None, option: str) -> list[str]:
    """The names that stand there. Raises `UsageError` as `listed_names` does, and for quotes that
    are not around a name."""
    return [_read_name(part, option) for part in listed_names(text, option)]


def _read_name(text: str, option: str) -> str:
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        return quoted[1].replace('""', '"')
    if '"' in text:
        raise UsageError(f"{option} {text}: double quotes must be around a whole name")
    return text.lower()
