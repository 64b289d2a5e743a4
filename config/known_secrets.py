"""Hide the secrets that this process knows, wherever they occur in a text.

A pattern finds a password only in a URL, and only if its end is clear; it cannot find a password
on its own. So each secret is remembered when it is read, and searched for in everything shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from urllib.parse import unquote

HIDDEN = "***"
#: Shorter secrets are not hidden: they occur in ordinary words, which would become unreadable.
SECRET_CHARS_MIN = 4
#: Secrets of up to this many letters and digits are hidden only as whole words: with the password
#: `test` every path with `pytest` in it would become unreadable.
_WORD_CHARS_MAX = 8
#: Bounds memory: a scheduler reads its webhook's file at each run, and it may change each time.
_SECRETS_MAX = 200
#: Default password of a new Cassandra. It is not secret, and hiding it would hide the name.
_NO_SECRETS = frozenset({"cassandra"})

#: The remembered secrets, the latest last.
_known: dict[str, None] = {}
#: Compiled from `_known` on first use.
_pattern: re.Pattern[str] | None = None

#: Escape letters of Python and JSON in a quoted text.
_NAMED = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f", "\v": "v", "\a": "a"}
_QUOTED = frozenset("\"'/")
#: No encoder escapes these.
_PLAIN = frozenset("-._")
#: A backslash; each level of quoting adds more.
_BACKSLASHES = r"\\{1,8}"


def remember(secret: str) -> None:
    """Hide this secret from now on, in every spelling; if it has several lines, also each line
    alone."""
    global _pattern
    for text in {secret, *secret.splitlines()}:
        if len(text) < SECRET_CHARS_MIN or text.isspace() or text in _NO_SECRETS or text in _known:
            continue
        _known[text] = None
        _pattern = None
    while len(_known) > _SECRETS_MAX:
        del _known[next(iter(_known))]


def remember_url(url: str) -> None:
    """Remember the password in a URL, both as written and as clients decode it."""
    before, found, rest = url.partition("://")
    identity, at, _ = (rest if found else before).rpartition("@")
    _, colon, password = identity.partition(":")
    if not at or not colon:
        return
    # Python's URL parser drops line ends and tabs.
    for spelled in (password, re.sub(r"[\t\r\n]", "", password)):
        remember(spelled)
        remember(unquote(spelled))


def hide(text: str) -> str:
    """Return the text with each remembered secret replaced by `***`, whether plain,
    percent-encoded or escaped as in a quoted text. If two start at one place, the longer counts."""
    global _pattern
    if not _known:
        return text
    if _pattern is None:
        longest_first = sorted(_known, key=len, reverse=True)
        _pattern = re.compile("|".join(map(_spellings, longest_first)))
    return _pattern.sub(HIDDEN, text)


def _spellings(secret: str) -> str:
    """Return a pattern for all spellings of the secret. Its repetitions are bounded, so that a
    search takes linear time."""
    pattern = "".join(_runs(secret))
    if len(secret) <= _WORD_CHARS_MAX and secret.isascii() and secret.isalnum():
        return f"(?<![A-Za-z0-9]){pattern}(?![A-Za-z0-9])"
    return pattern


def _runs(secret: str) -> Iterator[str]:
    """Yield the pattern's parts. A run of blanks or backslashes is one part, since quoting and
    wrapping make it longer."""
    for kind, group in groupby(secret, _kind):
        run = "".join(group)
        if kind == "blank":
            # Each blank matches in only one way; otherwise a search could take exponential time.
            ways = {way for character in run for way in _other_ways(character)}
            yield rf"(?:\s|{'|'.join(sorted(ways))}){{1,{2 * len(run) + 8}}}"
        elif kind == "backslash":
            yield rf"(?:\\|%(?:25)*5[Cc]){{{len(run)},{4 * len(run)}}}"
        else:
            yield from map(_character, run)


def _kind(character: str) -> str:
    return "blank" if character.isspace() else "backslash" if character == "\\" else ""


def _character(character: str) -> str:
    """Return a pattern for all spellings of one character."""
    plain = re.escape(character)
    if (character.isascii() and character.isalnum()) or character in _PLAIN:
        return plain
    if character == "%":
        return "%(?:25)*"
    return f"(?:{'|'.join([plain, *_other_ways(character)])})"


def _other_ways(character: str) -> list[str]:
    """Return patterns for the spellings of a character other than itself."""
    octets = character.encode("utf-8", "surrogatepass")
    units = character.encode("utf-16-be", "surrogatepass")
    code = ord(character)
    pairs = [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
    ways = [
        "".join(f"%(?:25)*{_hex(octet, 2)}" for octet in octets),
        "".join(f"{_BACKSLASHES}x{_hex(octet, 2)}" for octet in octets),
        "".join(f"{_BACKSLASHES}u{_hex(unit, 4)}" for unit in pairs),
        f"{_BACKSLASHES}U{_hex(code, 8)}",
    ]
    if 0x80 <= code < 0x100:
        ways.append(f"{_BACKSLASHES}x{_hex(code, 2)}")
    if character in _NAMED:
        ways.append(f"{_BACKSLASHES}{_NAMED[character]}")
    if character in _QUOTED:
        ways.append(f"{_BACKSLASHES}{re.escape(character)}")
    if character == " ":
        ways.append(r"\+")
    return ways


def _hex(number: int, digits: int) -> str:
    """Return a pattern for a hexadecimal number in either case."""
    return "".join(
        f"[{digit}{digit.upper()}]" if digit.isalpha() else digit
        for digit in f"{number:0{digits}x}"
    )
