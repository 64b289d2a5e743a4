"""Read a configuration file of Bulk Loader: the part of HOCON that such files use. Pure.

Objects within objects, paths with dots, lists, comments, and texts with quotes, without, and with
three. A file is read once from its beginning to its end, in linear time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from producer.translate.translation import NotTranslatable

#: Nobody nests deeper.
DEPTH_MAX = 100
#: A file that Bulk Loader's own configuration includes.
_OF_DRIVER = "driver.conf"
_TOKEN = re.compile(
    r'''(?P<blank>[^\S\n]++)
    | (?P<comment>(?:\#|//)[^\n]*+)
    | (?P<end>\n)
    | (?P<long>"""(?:[^"]++|"{1,2}(?!"))*+"{3,}+)
    | (?P<text>"(?!"")(?:[^"\\\n]++|\\.)*+")
    | (?P<open>"(?:"")?(?:[^"\\\n]++|\\.)*+)
    | (?P<reference>\$\{)
    | (?P<append>\+=)
    | (?P<mark>[{}\[\],:=])
    | (?P<word>(?:[^\s{}\[\],:=+\#"$/]++|/(?!/)|\+(?!=)|\$(?!\{))++)
    | (?P<wrong>.)''',
    re.VERBOSE,
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int


def read_config(text: str, name: str) -> dict[str, str]:
    """Return path -> value, as it would be given on the command line: texts in quotes, lists in
    brackets. A later value of a path replaces an earlier one, and null removes it.

    Raises `NotTranslatable`, which names the line of the file `name` and never its content: that
    may be a password.
    """
    return _Reader(text.removeprefix("\ufeff"), name).read()


class _Reader:
    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._tokens = [*_tokens(text)]
        self._next = 0
        self._found: dict[str, str] = {}

    def read(self) -> dict[str, str]:
        self._skip_ends()
        whole = self._skip("{")  # braces around everything
        open_: list[tuple[str, ...]] = []  # the path of each object that is not closed
        while True:
            self._skip_ends()
            token = self._look()
            if token.kind == "eof":
                if open_ or whole:
                    raise self._error("a } is missing")
                return self._found
            if self._skip(","):
                continue
            if self._skip("}"):
                if open_:
                    open_.pop()
                elif not whole:
                    raise self._error("a } without a {")
                else:
                    whole = False
                    self._skip_ends()
                    if self._look().kind != "eof":
                        raise self._error("something follows the last }")
                continue
            if self._includes():
                continue
            path = (*(open_[-1] if open_ else ()), *self._key())
            if self._begins_object():
                open_.append(path)
                if len(open_) > DEPTH_MAX:
                    raise self._error(f"more than {DEPTH_MAX} objects within each other")
                continue
            value = self._list() if self._skip("[") else self._scalar()
            self._set(".".join(path), value)
            if self._look().kind not in ("end", "eof") and self._look().text not in (",", "}"):
                raise self._error("something follows a value")

    def _set(self, path: str, value: str) -> None:
        self._found.pop(path, None)
        if value != "null":
            self._found[path] = value

    def _includes(self) -> bool:
        """Read `include "FILE"`, also with `classpath("FILE")` and the like; return whether it is
        there. The file of the driver's settings may be missing: every installation includes one,
        and it says only how to connect."""
        word, then = self._look(), self._tokens[self._next + 1]
        if word.text != "include" or then.text in ("=", ":", "{"):
            return False
        name = next(token for token in self._tokens[self._next :] if token.kind in ("text", "eof"))
        if _plain(name.text) != _OF_DRIVER:
            raise self._error("include is not read: put the settings of that file into this one")
        while self._look().kind not in ("end", "eof"):
            self._next += 1
        return True

    def _key(self) -> list[str]:
        """Return the parts of a path."""
        parts = [""]
        while (token := self._look()).kind in ("word", "text"):
            self._next += 1
            if token.kind == "text":
                parts[-1] += _plain(token.text)
            else:
                first, *others = token.text.split(".")
                parts[-1] += first
                parts += others
        if not all(parts):
            raise self._error("the name of a setting is missing")
        return parts

    def _begins_object(self) -> bool:
        """Read what is between a key and its value; return whether that is an object."""
        if self._look().kind == "append":
            raise self._error("+= is not read: give the whole list with =")
        if not (self._skip("=") or self._skip(":")):
            if self._skip("{"):
                return True
            raise self._error("= or { is missing behind the name of a setting")
        self._skip_ends()
        return self._skip("{")

    def _list(self) -> str:
        """Return a list, behind its bracket, as it would be in one line."""
        items: list[str] = []
        while True:
            self._skip_ends()
            if self._skip("]"):
                return f"[{','.join(items)}]"
            if self._skip(","):
                continue
            if self._look().text in ("{", "["):
                raise self._error("a list or an object within a list is not read")
            items.append(self._scalar())

    def _scalar(self) -> str:
        """Return a text, in its quotes if it has some, or the words up to the end of the value."""
        token = self._look()
        if token.kind == "reference":
            raise self._error("${...} is not read: write the value itself")
        self._next += 1
        if token.kind == "text":
            return token.text
        if token.kind == "long":
            return json.dumps(token.text[3:-3], ensure_ascii=False)
        if token.kind != "word":
            self._next -= 1
            raise self._error("a value is missing")
        words = [token.text]
        while self._look().kind == "word":
            words.append(self._look().text)
            self._next += 1
        return " ".join(words)

    def _skip_ends(self) -> None:
        while self._look().kind == "end":
            self._next += 1

    def _skip(self, mark: str) -> bool:
        token = self._look()
        if token.kind == "mark" and token.text == mark:
            self._next += 1
            return True
        return False

    def _look(self) -> _Token:
        return self._tokens[self._next]

    def _error(self, what: str) -> NotTranslatable:
        return NotTranslatable(f"dsbulk: -f {self._name}, line {self._look().line}: {what}")


def _tokens(text: str) -> Iterator[_Token]:
    line = 1
    for found in _TOKEN.finditer(text):
        kind = str(found.lastgroup)
        if kind not in ("blank", "comment"):
            yield _Token(kind, found[0], line)
        line += found[0].count("\n")
    # Two: `_includes` looks at the token behind the next one
    yield _Token("eof", "", line)
    yield _Token("eof", "", line)


def _plain(quoted: str) -> str:
    """Return the text within quotes."""
    try:
        return str(json.loads(quoted))
    except ValueError:  # an escape that JSON does not have
        return quoted[1:-1]
