"""Names of columns as CQL writes them: lower case without quotes, as they are in double quotes.

Pure.
"""

from __future__ import annotations

import re

from ringhaul.errors import UsageError

#: One that an even number of quotes follows.
_COMMA = re.compile(r',(?=[^"]*(?:"[^"]*"[^"]*)*$)')
_QUOTED = re.compile(r'"((?:[^"]|"")+)"')


def listed_names(text: str | None, option: str) -> list[str]:
    """`id, "a,b"` in its parts as they stand there; empty ones are dropped. None: no parts.

    Raises `UsageError` for a text without any: an empty variable of a shell must not mean all.
    """
    if text is None:
        return []
    parts = [part.strip() for part in _COMMA.split(text) if part.strip()]
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
