"""Read cqlsh's COPY statements. Pure.

The grammar, from cqlsh's own help: COPY table [(columns)] FROM|TO files|STDIN|STDOUT
[WITH option = value [AND ...]].
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from producer.translate.translation import NotTranslatable

#: A text, a quoted name, a word or number, or one character.
_TOKEN = re.compile(
    r"""\s*(?: '(?P<text>[^']*(?:''[^']*)*)' | "(?P<name>[^"]*(?:""[^"]*)*)"
    | (?P<word>[-+\w.]+) | (?P<mark>\S) )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class CopyStatement:
    """One COPY statement."""

    table: str  #: as it is in the schema, with or without a keyspace
    keyspace: str  #: empty: the current one
    columns: tuple[str, ...]  #: empty: all
    reads: bool  #: COPY FROM
    files: tuple[str, ...]  #: empty: standard input or output
    options: tuple[tuple[str, str], ...]  #: NAME in upper case, value


@dataclass(frozen=True)
class _Token:
    kind: str  #: text, name, word, mark; end
    value: str

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.value.upper() in words


def split_statements(text: str) -> Iterator[str]:
    """Yield the statements in a text, which semicolons separate. Comments are left out."""
    start = 0
    kept: list[str] = []
    pieces = re.finditer(r"'[^']*'|\"[^\"]*\"|--[^\n]*|//[^\n]*|/\*.*?\*/|;", text, re.DOTALL)
    for piece in pieces:
        if piece[0][0] in "'\"":
            continue
        kept.append(text[start : piece.start()])
        start = piece.end()
        if piece[0] == ";":
            yield "".join(kept).strip()
            kept = []
        else:
            kept.append(" ")
    kept.append(text[start:])
    yield "".join(kept).strip()


def read_copy(text: str) -> CopyStatement:
    """Return the statement in `text`. Raises `NotTranslatable`."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text), _Token("end", "its end")]
        self._next = 0

    def read(self) -> CopyStatement:
        self._want("COPY")
        keyspace, table = "", self._name("the table")
        if "." in table:  # names in quotes have none, either
            keyspace, _, table = table.partition(".")
        if not table:
            table = self._name("the table")
        elif not keyspace and self._look().kind == "word" and self._look().value[0] == ".":
            # A word such as .orders, or the dot alone
            keyspace, table = table, self._take().value[1:].lower() or self._name("the table")
        columns = self._columns()
        reads = self._want("FROM", "TO") == "FROM"
        files = self._files(reads)
        options = tuple(self._options())
        self._skip(";")
        if (token := self._look()).kind != "end":
            raise NotTranslatable(f"COPY: {token.value!r} follows the statement")
        return CopyStatement(table, keyspace, columns, reads, files, options)

    def _columns(self) -> tuple[str, ...]:
        names: list[str] = []
        if self._skip("("):
            while not self._skip(")"):
                names.append(self._name("a column"))
                self._skip(",")
        return tuple(names)

    def _files(self, reads: bool) -> tuple[str, ...]:
        files: list[str] = []
        stream = "STDIN" if reads else "STDOUT"
        while True:
            token = self._take()
            if token.is_word(stream):
                return ()
            if token.kind not in ("text", "name"):
                raise NotTranslatable(f"COPY: a file in quotes or {stream} is missing")
            # COPY itself splits a text at commas.
            files += [name.strip() for name in token.value.split(",")] if reads else [token.value]
            if not self._skip(","):
                return tuple(files)

    def _options(self) -> Iterator[tuple[str, str]]:
        if not self._look().is_word("WITH"):
            return
        self._take()
        while True:
            name = self._take()
            if name.kind != "word":
                raise NotTranslatable(f"COPY: an option is missing before {name.value!r}")
            if not self._skip("="):
                raise NotTranslatable(f"COPY: {name.value} has no '='")
            value = self._take()
            if value.kind not in ("text", "word", "name"):
                raise NotTranslatable(f"COPY: {name.value} has no value")
            yield name.value.upper(), value.value
            if not self._look().is_word("AND"):
                return
            self._take()

    def _name(self, what: str) -> str:
        token = self._take()
        if token.kind == "name":
            return token.value
        if token.kind == "word":
            return token.value.lower()
        shell = "; variables of a shell are not known here" if token.value == "$" else ""
        raise NotTranslatable(f"COPY: the name of {what} is missing before {token.value!r}{shell}")

    def _want(self, *words: str) -> str:
        token = self._take()
        if not token.is_word(*words):
            raise NotTranslatable(f"COPY: {' or '.join(words)} is missing before {token.value!r}")
        return token.value.upper()

    def _skip(self, mark: str) -> bool:
        if self._look() == _Token("mark", mark):
            self._next += 1
            return True
        return False

    def _look(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    text = text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found is not None
        at = found.end()
        kind = str(found.lastgroup)
        value = found[kind]
        if kind == "mark" and value in "'\"":
            raise NotTranslatable(f"COPY: a quote is not closed: {text[found.start(kind) :]:.60}")
        if kind in ("text", "name"):
            quote = "'" if kind == "text" else '"'
            value = value.replace(quote * 2, quote)
        yield _Token(kind, value)
