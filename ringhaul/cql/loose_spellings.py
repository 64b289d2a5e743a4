"""Nested values in the looser spellings of other tools, which are read only if accepted.

| CQL | spellings, beside JSON and CQL literals |
|---|---|
| list, set, vector, tuple | elements in any brackets, or at the top level in none: `1,2`, `{1,2}` |
| map | entries in braces, or at the top level in none, with `:` or `=`: `a: 1, b = 2` |
| user-defined type | `{'f1': 42}`, `f1: 42`; by position as `[42, 43]` or `(42, 43)` |
| scalar | in single or double quotes, or bare up to the next comma or bracket |
| null | the bare word `null`, or nothing |
"""

from __future__ import annotations

import json
import re

from ringhaul.cql.literal import BLANKS, QUOTED, Value
from ringhaul.cql.types import CqlType

_PAIRS = {"[": "]", "{": "}", "(": ")"}
_DOUBLE = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_BARE = re.compile(r"[^\[\](){},]*")
#: A key ends at a colon or equals sign, preferably before a blank: a time in a key has colons.
_BARE_KEY = re.compile(r"[^\[\](){},'\"]*?(?=[:=]\s)|[^\[\](){},'\":=]*")
_SEPARATOR = re.compile(r"\s*[:=]")


def parse_loose(kind: CqlType, text: str) -> Value:
    """Parse a nested value to the form of parsed JSON; a map is a list of pairs.

    Raises `ValueError` with the reason. Linear in the length of the text.
    """
    reader = _Reader(text)
    try:
        value = reader.value(kind, top=True)
        reader.blanks()
        if reader.at < len(text):
            raise reader.error("nothing more")
    except RecursionError:
        raise ValueError("not readable: its nesting is too deep") from None
    if value is None:
        raise ValueError("not a value, but null")
    return value


class _Reader:
    """A text, and the position up to which it is read."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def error(self, wanted: str) -> ValueError:
        return ValueError(f"not readable: {wanted} is expected at character {self.at + 1}")

    def blanks(self) -> None:
        found = BLANKS.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def value(self, kind: CqlType, *, top: bool = False) -> Value:
        self.blanks()
        if kind.scalar:
            return self.scalar(_BARE)
        closing = _PAIRS.get(self.text[self.at : self.at + 1])
        if closing is None:
            if not top:
                if self.scalar(_BARE) is None:
                    return None
                raise self.error("a bracket")
            if not self.text.strip():
                raise self.error("a value")
        else:
            self.at += 1
        named = kind.name == "udt" and self._is_named(kind)
        value = self._entries(kind, closing, named)
        if closing is not None:
            if self.text[self.at : self.at + 1] != closing:
                raise self.error(closing)
            self.at += 1
        return value

    def _entries(self, kind: CqlType, closing: str | None, named: bool) -> Value:
        """Read what is between brackets, or up to the end of the text."""
        elements: list[Value] = []
        fields: dict[str, Value] = {}
        while True:
            self.blanks()
            next_one = self.text[self.at : self.at + 1]
            if next_one == (closing or "") and not (elements or fields):
                break
            if kind.name == "map":
                key = self.value(kind.of[0]) if not kind.of[0].scalar else self.scalar(_BARE_KEY)
                self._separator()
                elements.append([key, self.value(kind.of[1])])
            elif named:
                name = self._field(kind)
                if name in fields:
                    raise self.error(f"another field than {name!r}, which occurs twice,")
                fields[name] = self.value(kind.of[kind.fields.index(name)])
            else:
                elements.append(self.value(kind.of[min(len(elements), len(kind.of) - 1)]))
            self.blanks()
            if self.text[self.at : self.at + 1] != ",":
                break
            self.at += 1
        return fields if named else elements

    def _is_named(self, kind: CqlType) -> bool:
        """Whether the first entry begins with the name of a field and a separator."""
        begin = self.at
        try:
            self.blanks()
            self._field(kind)
        except ValueError:
            return False
        finally:
            self.at = begin
        return True

    def _field(self, kind: CqlType) -> str:
        name = self.scalar(_BARE_KEY)
        if name not in kind.fields:
            raise self.error(f"a field ({', '.join(kind.fields)})")
        self._separator()
        return str(name)

    def _separator(self) -> None:
        found = _SEPARATOR.match(self.text, self.at)
        if found is None:
            raise self.error(":")
        self.at = found.end()

    def scalar(self, bare: re.Pattern[str]) -> str | None:
        """Read a text in quotes, or a bare word; None for null."""
        single = QUOTED.match(self.text, self.at)
        if single:
            self.at = single.end()
            return single[1].replace("''", "'")
        double = _DOUBLE.match(self.text, self.at)
        if double:
            self.at = double.end()
            try:
                return str(json.loads(double[0], strict=False))
            except ValueError:
                raise self.error("a text in JSON's quotes") from None
        word = bare.match(self.text, self.at)
        assert word is not None
        self.at = word.end()
        found = word[0].strip()
        return None if found.lower() in ("", "null") else found
