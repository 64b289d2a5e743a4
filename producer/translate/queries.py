"""Statements of Bulk Loader, which may leave the keyspace to an option. Pure."""

from __future__ import annotations

import re

from ringhaul.errors import UsageError
from ringhaul.mapping.language import parse_mapping

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
_MARKER = r'(?::\s*(?:\w+|"(?:[^"]|"")+")|\?)'
#: The condition by which Bulk Loader splits a SELECT, with any names of the two parameters.
_TOKEN_RANGE = rf"{_TOKEN}\s*>=?\s*{_MARKER}\s+AND\s+{_TOKEN}\s*<=?\s*{_MARKER}"
_RANGE_FIRST = re.compile(rf"\bWHERE\s+{_TOKEN_RANGE}\s+AND\b", re.IGNORECASE)
_RANGE_LAST = re.compile(rf"\b(?:WHERE|AND)\s+{_TOKEN_RANGE}\s*", re.IGNORECASE)
_PLAIN = re.compile(r"[a-z][a-z0-9_]*")
_TOKEN_CALL = re.compile(_TOKEN, re.IGNORECASE)
_PIECES = re.compile(r'"((?:[^"]|"")*)"|\s+|[^"\s]+')
_DISTINCT = re.compile(r"SELECT\s+DISTINCT\b", re.IGNORECASE)
_BATCH = re.compile(r"\s*BEGIN\b[^']{0,100}?\bBATCH\b", re.IGNORECASE)
#: Texts and quoted names match to be skipped; up to the name of a table without a keyspace.
_TABLES = re.compile(
    rf"'(?:[^']|'')*'|(?P<before>\b(?:INSERT\s+INTO|UPDATE|DELETE\b[^';]{{0,500}}?\bFROM)\s+)"
    rf'(?={_NAME}(?!\w|\s*\.|"))|"(?:[^"]|"")*"',
    re.IGNORECASE,
)
#: Older names of the write time and the TTL in a mapping -> the word before their marker, and what
#: the marker is called if it is a `?`.
_TIMES = {"__timestamp": ("TIMESTAMP", "[timestamp]"), "__ttl": ("TTL", "[ttl]")}
_OLD_TIME = re.compile(r"\b__(?:timestamp|ttl)\b", re.IGNORECASE)
_LISTED = re.compile(
    r"\s*SELECT\s+(?P<items>[^']+?)\s(?P<rest>FROM\s.*)", re.IGNORECASE | re.DOTALL
)
_ALIAS = re.compile(rf"(?P<item>.*\S)\s+AS\s+(?P<name>{_NAME})", re.IGNORECASE | re.DOTALL)


def qualified(query: str, keyspace: str) -> str:
    """Return a statement on a table of `keyspace`, unless the statement names one; a batch with
    each of its statements so."""
    if not keyspace:
        return query
    name = quoted_name(keyspace)
    if _BATCH.match(query):
        return _TABLES.sub(lambda one: f"{one[0]}{name}." if one["before"] else one[0], query)
    found = _TABLE.match(query)
    return query if found is None else f"{query[: found.end()]}{name}.{query[found.end() :]}"


def quoted_name(name: str) -> str:
    """Return a name of the schema as CQL has it: in quotes, unless it needs none."""
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def with_markers_of_times(query: str, mapping: str) -> str:
    """Return a mapping that names the markers of write time and TTL in a statement, in place of
    `__timestamp` and `__ttl`."""

    def marker(found: re.Match[str]) -> str:
        word, unnamed = _TIMES[found[0].lower()]
        given = re.search(rf"\b{word}\s+({_MARKER})", query, re.IGNORECASE)
        if given is None:
            return found[0]
        name = given[1].removeprefix(":").strip()
        if name.startswith('"'):
            return name
        return f'"{unnamed}"' if name == "?" else quoted_name(name.lower())

    return _OLD_TIME.sub(marker, mapping)


def renamed(query: str, mapping: str, *, numbered: bool) -> str | None:
    """Return a SELECT whose columns have the order and the names that a mapping of fields to them
    says. `numbered`: fields are numbers, by which the columns are ordered. None: the mapping or
    the SELECT is of another kind."""
    from ringhaul.query.select_text import split_items  # imports everything that reads SQL

    listed = _LISTED.fullmatch(query)
    try:
        given = parse_mapping(mapping, reads=True)
    except UsageError:
        return None
    if listed is None or given.rest:
        return None
    items: dict[str, str] = {}
    for item in split_items(listed["items"]):
        alias = _ALIAS.fullmatch(item)
        items[_name_in(alias["name"] if alias else item)] = alias["item"] if alias else item
    chosen: list[tuple[str, str]] = []
    for entry in given.entries:
        name = (entry.right or entry.left).text.strip()
        column = items.get(name) or items.get(_name_in(name))
        if column is None:
            return None
        chosen.append((entry.left.text.strip() if entry.right else name, column))
    if numbered and all(field.isdecimal() for field, _ in chosen):
        columns = [item for _, item in sorted(chosen, key=lambda one: int(one[0]))]
    else:
        columns = [
            item if _name_in(item) == field else f"{item} AS {quoted_name(field)}"
            for field, item in chosen
        ]
    return f"SELECT {', '.join(columns)} {listed['rest']}"


def _name_in(text: str) -> str:
    """Return the name that a name of CQL, or a call, gives to its column."""
    return _PIECES.sub(
        lambda one: one[0].strip().lower() if one[1] is None else one[1].replace('""', '"'), text
    )


def without_token_range(query: str) -> str:
    """Return a SELECT without the condition by which Bulk Loader splits it."""
    return _RANGE_LAST.sub("", _RANGE_FIRST.sub("WHERE", query, count=1), count=1).strip()


def counted(query: str) -> tuple[str, str] | None:
    """Return the table and the condition of a SELECT of rows; None: it is of another kind."""
    query = without_token_range(query).strip().rstrip("; \n")
    found = _COUNTED.fullmatch(query)
    if found is None or _DISTINCT.match(query):
        return None
    where = (found["where"] or "").strip()
    before = query[: found.start("where")] if where else query
    if _OTHER_CLAUSE.search(before) or _OTHER_CLAUSE.search(_TOKEN_CALL.sub("token", where)):
        return None
    return found["table"].replace('"', ""), where
