"""Statements of Bulk Loader, which may leave the keyspace to an option. Pure."""

from __future__ import annotations

import re

_NAME = r'(?:"(?:[^"]|"")+"|\w+)'
#: Up to the name of the table, which no keyspace precedes.
_TABLE = re.compile(
    rf"\s*(?:INSERT\s+INTO|UPDATE|(?:DELETE|SELECT)\b[^';]*?\bFROM)\s+(?={_NAME}(?!\w|\s*\.|\"))",
    re.IGNORECASE,
)
#: Few, so that the search takes linear time.
_BLANKS = r"\s{1,9}"
_COUNTED = re.compile(
    rf"SELECT\b[^';]*?\bFROM{_BLANKS}(?P<table>{_NAME}(?:\.{_NAME})?)"
    rf"(?:{_BLANKS}WHERE{_BLANKS}(?P<where>[^;]*?))?(?:{_BLANKS}ALLOW{_BLANKS}FILTERING)?",
    re.IGNORECASE,
)
_OTHER_CLAUSE = re.compile(r"\b(?:LIMIT|GROUP\s+BY|ORDER\s+BY)\b|\w\(", re.IGNORECASE)
_TOKEN = r"token\s*\([^()]*\)"
#: The condition by which Bulk Loader splits a SELECT, with any names of the two parameters.
_TOKEN_RANGE = rf"{_TOKEN}\s*>=?\s*:\w+\s+AND\s+{_TOKEN}\s*<=?\s*:\w+"
_RANGE_FIRST = re.compile(rf"\bWHERE\s+{_TOKEN_RANGE}\s+AND\b", re.IGNORECASE)
_RANGE_LAST = re.compile(rf"\b(?:WHERE|AND)\s+{_TOKEN_RANGE}\s*", re.IGNORECASE)
_PLAIN = re.compile(r"[a-z][a-z0-9_]*")


def qualified(query: str, keyspace: str) -> str:
    """Return a statement on a table of `keyspace`, unless the statement names one or is a batch."""
    found = _TABLE.match(query)
    if not keyspace or found is None:
        return query
    name = keyspace if _PLAIN.fullmatch(keyspace) else '"' + keyspace.replace('"', '""') + '"'
    return f"{query[: found.end()]}{name}.{query[found.end() :]}"


def without_token_range(query: str) -> str:
    """Return a SELECT without the condition by which Bulk Loader splits it."""
    return _RANGE_LAST.sub("", _RANGE_FIRST.sub("WHERE", query, count=1), count=1).strip()


def counted(query: str) -> tuple[str, str] | None:
    """Return the table and the condition of a SELECT of rows; None: it is of another kind."""
    query = without_token_range(query).strip().rstrip("; \n")
    found = _COUNTED.fullmatch(query)
    if found is None or _OTHER_CLAUSE.search(query):
        return None
    return found["table"].replace('"', ""), (found["where"] or "").strip()
