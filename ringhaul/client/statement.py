"""What a CQL statement is about, as far as the client must know. Pure."""

from __future__ import annotations

import re

#: Strings, quoted names and comments, in which nothing is a keyword.
_QUOTED = re.compile(
    r"'(?:[^']|'')*' | \"(?:[^\"]|\"\")*\" | \$\$.*?\$\$ | --[^\n]* | //[^\n]* | /\*.*?\*/",
    re.DOTALL | re.VERBOSE,
)
_SELECT = re.compile(r"\s*select\b", re.IGNORECASE)
_IF = re.compile(r"\bif\b", re.IGNORECASE)


def is_select(text: str) -> bool:
    """Return whether a text is a SELECT, not the name of a table."""
    return bool(_SELECT.match(_QUOTED.sub(" ", text)))


def returns_rows(statement: str) -> bool:
    """Return whether a statement has answers: a SELECT, or one with a condition (`IF`, which is a
    reserved word)."""
    plain = _QUOTED.sub(" ", statement)
    return bool(_SELECT.match(plain) or _IF.search(plain))
