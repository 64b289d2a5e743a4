"""Names of columns as in CQL: unquoted names become lower case, double-quoted ones keep their case.

Pure.
"""

from __future__ import annotations

import re

from ringhaul.errors import UsageError

#: A part up to the next comma outside quotes. An unclosed quote is an ordinary character.
_PART = re.compile(r'(?:[^",]++|"[^"]*+"|"(?=[^"]*+\Z))*+')
_QUOTED = re.compile(r'"((?:[^"]++|"")++)"')
_PLAIN = re.compile("[a-z][a-z0-9_]*")
#: Words that the grammar of CQL takes for itself: they name nothing unless they are quoted.
_RESERVED_TEXT = """
    add allow alter and apply asc authorize batch begin by columnfamily create default
    delete desc describe drop entries execute from full grant if in index infinity insert
    into is keyspace limit materialized modify nan norecursive not null of on or order
    primary rename replace revoke schema select set table to token truncate unlogged unset
    update use using view where with
"""
_RESERVED = frozenset(_RESERVED_TEXT.split())


def listed_names(text: str | None, option: str) -> list[str]:
    """Split `id, "a,b"` into its parts, unchanged; empty parts are dropped. None: no parts.

    Raises `UsageError` for a text without parts: an empty shell variable must not mean all columns.
    """
    if text is None:
        return []
    parts = [part for found in _PART.findall(text) if (part := found.strip())]
    if not parts:
        raise UsageError(f"{option} {text!r} names no column: give some, or leave it out")
    return parts


def read_names(text: str | None, option: str) -> list[str]:
    """Split a list into CQL names. Raises `UsageError` as `listed_names` does, and for quotes that
    do not enclose a complete name."""
    return [_read_name(part, option) for part in listed_names(text, option)]


def _read_name(text: str, option: str) -> str:
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        return quoted[1].replace('""', '"')
    if '"' in text:
        raise UsageError(f"{option} {text}: double quotes must enclose a complete name")
    return text.lower()


def spell_name(name: str) -> str:
    """Return a name as CQL text: quoted unless it is plain, so that its case is kept."""
    if _PLAIN.fullmatch(name) and name not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'
