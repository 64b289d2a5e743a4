"""Split the text of a SELECT of rows: what sqlglot reads, and what only Cassandra understands.

Items of its list such as `m['k']`, `(int)42` or `toJson(at)` are expressions of CQL, not of SQL.
They are kept as written, with stand-ins in the text for sqlglot, as is PER PARTITION LIMIT. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from sqlglot import exp

from ringhaul.option_names import job_option
from ringhaul.query.errors import QueryError
from ringhaul.query.scope import AGGREGATES, SELECTORS

#: Comments are in one group with spaces.
_TOKEN = re.compile(
    r"""(?P<space>(?:\s++|--[^\n]*+|//[^\n]*+|/\*.*?(?:\*/|\Z))++)
    | (?P<string>'(?:[^']++|'')*+'|\$\$.*?\$\$)
    | (?P<name>"(?:[^"]++|"")*+")
    | (?P<word>[^\W\d]\w*+)
    | (?P<number>\d[\w]*+)
    | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
#: sqlglot takes a longer one for no column.
_PATH_MAX = 3
_CONSTANTS = ("true", "false", "null")
_OPEN, _CLOSED = "([{", ")]}"
#: Aggregates by every name that sqlglot knows them by.
_AGGREGATES = {
    *AGGREGATES,
    *(
        name.lower()
        for name, function in exp.FUNCTION_BY_NAME.items()
        if function.sql_name().lower() in AGGREGATES
    ),
}


class Token(NamedTuple):
    """A piece of the text. `kind`: a group of `_TOKEN`. `depth`: brackets around it."""

    kind: str
    text: str
    depth: int

    def is_word(self, word: str) -> bool:
        return self.kind == "word" and self.text.lower() == word

    @property
    def name(self) -> str:
        """The CQL name that it is; empty if it is not a name."""
        if self.kind == "name":
            return self.text[1:-1].replace('""', '"')
        return self.text.lower() if self.kind == "word" else ""


class ListItem(NamedTuple):
    """An item of the SELECT list."""

    cql: str  #: its text without alias and comments
    alias: str | None  #: its alias, spelt as a name of CQL
    for_server: bool  #: only Cassandra can read it
    #: The names of `a.b`, a column of a table or a field of a column; otherwise empty.
    path: tuple[str, ...]


class SelectText(NamedTuple):
    """A SELECT in parts."""

    sql: str  #: text for sqlglot, with a stand-in for each item that the server computes
    items: tuple[ListItem, ...]  #: empty unless it selects rows
    per_partition: str | None  #: what follows PER PARTITION LIMIT


def split_select(text: str) -> SelectText:
    """Split a statement. If it selects no rows, or is not a SELECT, `sql` is all of it except a PER
    PARTITION LIMIT. Raises `QueryError` for SELECT JSON.
    """
    tokens = list(_tokens(text))
    tokens, per_partition = _without_per_partition(tokens)
    sql = "".join(token.text for token in tokens) if per_partition is not None else text
    parts = _list_of(tokens)
    if parts is None:
        return SelectText(sql, (), per_partition)
    head, listed, tail = parts
    items = tuple(_item(part) for part in listed)
    if not any(item.for_server for item in items):
        return SelectText(sql, items, per_partition)
    stand_in = "cql"
    while stand_in in text:
        stand_in += "_"
    shown = [
        f'"{stand_in}{number}"' if item.for_server else _joined(part)
        for number, (item, part) in enumerate(zip(items, listed, strict=True))
    ]
    sql = f"{_joined(head)} {', '.join(shown)} {_joined(tail)}"
    return SelectText(sql, items, per_partition)


def split_items(text: str) -> list[str]:
    """Split the list of a SELECT at its commas; empty parts are dropped."""
    parts: list[list[Token]] = [[]]
    for token in _tokens(text):
        if token.depth == 0 and token.text == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return [item for part in parts if (item := "".join(one.text for one in part).strip())]


def _tokens(text: str) -> Iterator[Token]:
    depth = 0
    for found in _TOKEN.finditer(text):
        kind = str(found.lastgroup)
        if kind == "mark" and found[0] in _CLOSED:
            depth -= 1
        yield Token(kind, found[0], depth)
        if kind == "mark" and found[0] in _OPEN:
            depth += 1


def _joined(tokens: Sequence[Token]) -> str:
    """Return the text without comments."""
    return "".join(" " if token.kind == "space" else token.text for token in tokens).strip()


def _without_per_partition(tokens: list[Token]) -> tuple[list[Token], str | None]:
    """Return the tokens without PER PARTITION LIMIT and what follows it, and that."""
    places = [place for place, token in enumerate(tokens) if token.kind != "space"]
    for first, place in enumerate(places):
        clause = [tokens[one] for one in places[first : first + 4]]
        words = zip(("per", "partition", "limit"), clause, strict=False)
        if len(clause) < 3 or not all(token.is_word(word) for word, token in words):
            continue
        last = places[min(first + 3, len(places) - 1)]
        value = clause[3].text if len(clause) == 4 else ""
        return [*tokens[:place], *tokens[last + 1 :]], value
    return tokens, None


def _list_of(tokens: list[Token]) -> tuple[list[Token], list[list[Token]], list[Token]] | None:
    """Return the tokens up to the list, each item's tokens, and the tokens from FROM on. None if
    this is no SELECT of rows."""
    real = [token for token in tokens if token.kind != "space"]
    if len(real) < 2 or not real[0].is_word("select") or real[1].is_word("distinct"):
        return None
    _refuse_json(real)
    start = tokens.index(real[0]) + 1
    listed: list[list[Token]] = [[]]
    for place, token in enumerate(tokens[start:], start):
        if token.depth == 0 and token.is_word("from"):
            tail = tokens[place:]
            break
        if token.depth == 0 and token.text == ";":
            return None
        if token.depth == 0 and token.text == "," and token.kind == "mark":
            listed.append([])
        else:
            listed[-1].append(token)
    else:
        return None
    for part in listed:
        code = [token for token in part if token.kind != "space"]
        if not code or any(_is_aggregate(*call) for call in _calls(code)):
            return None
    outside = [token for token in tail if token.kind != "space" and token.depth == 0]
    if any(a.is_word("group") and b.is_word("by") for a, b in pairwise(outside)):
        return None
    return tokens[:start], listed, tail


def _refuse_json(real: Sequence[Token]) -> None:
    """Raise `QueryError` for SELECT JSON; `json` may also be the name of a column."""
    if len(real) < 3 or not real[1].is_word("json"):
        return
    then = real[2]
    if then.kind == "name" or then.text == "*" or (then.name and then.name not in ("from", "as")):
        raise QueryError(
            f"SELECT JSON: leave JSON out; {job_option('format')} jsonl (query: "
            f"{job_option('format')} json) writes each row so"
        )


def _item(part: Sequence[Token]) -> ListItem:
    code = [token for token in part if token.kind != "space"]
    alias, own = None, list(part)
    if len(code) > 2 and code[-2].is_word("as") and code[-2].depth == 0 and code[-1].name:
        alias = code[-1].name
        del code[-2:]
        while own and (own[-1].kind == "space" or not own[-1].is_word("as")):
            own.pop()
        own.pop()
    path = _path(code)
    for_server = len(path) > _PATH_MAX if path else not _is_sql(code)
    return ListItem(_joined(own), alias, for_server, path)


def _path(code: Sequence[Token]) -> tuple[str, ...]:
    """Return the names of `a.b.c`; empty for anything else."""
    names, dots = code[::2], code[1::2]
    if len(names) == len(dots) or not all(token.text == "." for token in dots):
        return ()
    path = tuple(token.name for token in names)
    return path if all(path) and code[0].text.lower() not in _CONSTANTS else ()


def _is_sql(code: Sequence[Token]) -> bool:
    """Return whether sqlglot can read an item, or whatever it is gets its message there."""
    first = code[0]
    if code[-1].text == "*" and (len(code) == 1 or code[-2].text == "."):
        return True
    if first.text == "*" or (first.is_word("case") and len(code) > 1):
        return True
    if any(token.is_word("over") and token.depth == 0 for token in code[1:]):
        return True
    if first.text == "(" and len(code) > 2:
        return code[1].is_word("select") or (code[-1].text == ")" and bool(_path(code[1:-1])))
    if len(code) > 3 and first.name in SELECTORS and code[1].text == "(" and code[-1].text == ")":
        names, commas = code[2:-1:2], code[3:-1:2]
        return all(one.name for one in names) and all(one.text == "," for one in commas)
    # A name with an alias without AS.
    return len(code) > 1 and bool(code[-1].name and _path(code[:-1]))


def _calls(code: Sequence[Token]) -> Iterator[tuple[str, str]]:
    for place, token in enumerate(code[:-1]):
        if token.name and code[place + 1].text == "(":
            qualified = place > 1 and code[place - 1].text == "."
            yield (code[place - 2].name if qualified else ""), token.name


def _is_aggregate(keyspace: str, name: str) -> bool:
    return keyspace in ("", "system") and name.lower() in _AGGREGATES
