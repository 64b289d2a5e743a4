"""Parse nested values as CQL literals, as cqlsh shows them and COPY TO writes them. Pure.

| CQL | literal |
|---|---|
| list, vector | `[a, b]` |
| set | `{a, b}` |
| map | `{key: value, ...}` |
| tuple | `(a, b)` |
| user-defined type | `{field: value, ...}`; fields that are missing are null |
| text, varchar, ascii | `'text'`, with quotes inside doubled |
| other scalars | in quotes or bare, spelt as in a CSV cell |
| null | `null`, or nothing at all, as COPY writes a null field |

A bare word is never a text, so that JSON is not mistaken for a literal. Source: the
grammar of constants and of collections, tuples and user-defined types in Cassandra's CQL reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ringhaul.cql.types import TEXTS, CqlType

#: The form that `ringhaul.cql.nested` takes: texts, nested lists and objects of texts, and None.
Value = str | list["Value"] | dict[str, "Value"] | None

_BRACKETS = {"list": "[]", "vector": "[]", "set": "{}", "map": "{}", "tuple": "()", "udt": "{}"}
BLANKS = re.compile(r"\s*")
# Possessive: backtracking would cost some 140 bytes of memory for each character.
QUOTED = re.compile(r"'((?:[^']++|'')*+)'")
_BARE = re.compile(r"[^\[\](){},'\"]*")
#: A time contains colons; after a key COPY writes a colon and a blank.
_BARE_KEY = re.compile(r"[^\[\](){},'\"]*?(?=:\s)|[^\[\](){},'\":]*")
_FIELD = re.compile(r'"((?:[^"]++|"")*+)"|([^\[\](){},:\'"]+)')


def parse_literal(kind: CqlType, text: str) -> Value:
    """Parse a literal of this nested type to the form of parsed JSON; a map is a list of pairs.

    Raises `ValueError` with the reason.
    """
    reader = _Reader(text)
    try:
        value = reader.value(kind)
        reader.blanks()
        if reader.at < len(text):
            raise reader.error("nothing more")
        if value is None:
            raise reader.error(_BRACKETS[kind.name][0])
    except RecursionError:
        raise ValueError("not a readable CQL literal: its nesting is too deep") from None
    return value


class _Reader:
    """A literal, and the position up to which it is read."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def error(self, wanted: str) -> ValueError:
        return ValueError(f"not a CQL literal: {wanted} is expected at character {self.at + 1}")

    def blanks(self) -> None:
        self.at = self._match(BLANKS).end()

    def value(self, kind: CqlType) -> Value:
        """Read a value of any type."""
        self.blanks()
        if kind.name not in _BRACKETS:
            return self.scalar(kind, _BARE)
        if self._is_null():
            return None
        if kind.name == "map":
            return list(self._entries(lambda: self._key(kind.of[0]), kind))
        if kind.name == "udt":
            return self._fields(kind)
        elements = self._elements(kind)
        return [self.value(kind.of[min(place, len(kind.of) - 1)]) for place in elements]

    def scalar(self, kind: CqlType, bare: re.Pattern[str]) -> str | None:
        """Read a text in quotes, or a bare word."""
        quoted = QUOTED.match(self.text, self.at)
        if quoted:
            self.at = quoted.end()
            return quoted[1].replace("''", "'")
        word = self._match(bare)[0].strip()
        if word and word.lower() != "null" and kind.name in TEXTS:
            raise self.error("a quote")
        self.at = self._match(bare).end()
        return None if word.lower() in ("", "null") else word

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Match a pattern that also matches the empty text."""
        found = pattern.match(self.text, self.at)
        assert found is not None
        return found

    def _is_null(self) -> bool:
        word = self._match(_BARE)
        follows = self.text[word.end() : word.end() + 1]
        if word[0].strip().lower() not in ("", "null") or follows in ("[", "{", "("):
            return False
        self.at = word.end()
        return True

    def _take(self, character: str) -> None:
        self.blanks()
        if self.text[self.at : self.at + 1] != character:
            raise self.error(character)
        self.at += 1

    def _elements(self, kind: CqlType) -> Iterator[int]:
        """Read the brackets of a type: yield the number of each element, positioned before it."""
        closing = _BRACKETS[kind.name][1]
        self._take(_BRACKETS[kind.name][0])
        self.blanks()
        # Empty brackets have no element, except in a tuple, which is never empty: one null.
        if kind.name != "tuple" and self.text[self.at : self.at + 1] == closing:
            self.at += 1
            return
        place = 0
        while True:
            yield place
            self.blanks()
            if self.text[self.at : self.at + 1] != ",":
                break
            self.at += 1
            place += 1
        self._take(closing)

    def _entries(self, key: Callable[[], Value], kind: CqlType) -> Iterator[list[Value]]:
        for _ in self._elements(kind):
            self.blanks()
            name = key()
            self._take(":")
            yield [name, self.value(kind.of[1])]

    def _key(self, kind: CqlType) -> Value:
        return self.value(kind) if kind.name in _BRACKETS else self.scalar(kind, _BARE_KEY)

    def _fields(self, kind: CqlType) -> Value:
        of = dict(zip(kind.fields, kind.of, strict=True))
        fields: dict[str, Value] = {}
        for _ in self._elements(kind):
            self.blanks()
            found = _FIELD.match(self.text, self.at)
            if found is None:
                raise self.error("a field's name")
            name = found[2].strip() if found[1] is None else found[1].replace('""', '"')
            if name not in of:
                raise self.error(f"a field ({', '.join(kind.fields)})")
            if name in fields:
                raise self.error(f"another field than {name!r}, which occurs twice,")
            self.at = found.end()
            self._take(":")
            fields[name] = self.value(of[name])
        return fields
