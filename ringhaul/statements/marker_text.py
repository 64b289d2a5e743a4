"""The markers of a statement as its text has them: which are named, and which say how rows are
written. Pure.

A prepared statement gives each marker a name and a type. The text alone tells whether two markers
of one name are one value (`:x` twice) or two (`WHERE day >= ? AND day < ?`), and which marker is a
write time or a TTL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

Role = Literal["timestamp", "ttl"]

_TOKENS = re.compile(
    r"--[^\n]*|//[^\n]*|/\*.*?(?:\*/|\Z)|\$\$.*?\$\$|'(?:[^']++|'')*+'"
    r'|(?P<named>:\s*(?:[A-Za-z_]\w*|"(?:[^"]++|"")*+"))'
    r'|"(?:[^"]++|"")*+"'
    r"|(?P<marker>\?)|(?P<word>\w+)",
    re.DOTALL,
)


class MarkerText(NamedTuple):
    """One marker."""

    name: str | None  #: None: `?`
    role: Role | None  #: it follows TIMESTAMP or TTL


def marker_texts(statement: str, names: Sequence[str]) -> list[MarkerText]:
    """Return the markers of a statement whose prepared markers have these `names`; an empty list
    if the text cannot be matched with them."""
    found: list[MarkerText] = []
    word = ""
    for token in _TOKENS.finditer(statement):
        if token["word"]:
            word = token["word"].lower()
            continue
        named = token["named"]
        if not named and not token["marker"]:
            continue
        name = _name(named[1:].strip()) if named else None
        if len(found) == len(names) or (named and name != names[len(found)]):
            continue  # not a marker, such as a field in the literal of a UDT
        role: Role | None = "timestamp" if word == "timestamp" else "ttl" if word == "ttl" else None
        found.append(MarkerText(name, role))
        word = ""
    return found if len(found) == len(names) else []


def _name(text: str) -> str:
    return text[1:-1].replace('""', '"') if text.startswith('"') else text.lower()


def repeated_names(markers: Sequence[MarkerText]) -> list[int | None]:
    """Return for each marker the place of the first marker with its value; None: it is first."""
    first: dict[str, int] = {}
    found: list[int | None] = []
    for place, marker in enumerate(markers):
        known = None if marker.name is None else first.setdefault(marker.name, place)
        found.append(None if known in (None, place) else known)
    return found
