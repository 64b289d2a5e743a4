"""The secrets of this process, hidden wherever they stand in a text.

A pattern finds a password in a URL only as far as it can see where the password ends, and none that
stands alone. So each secret is remembered when it is read, and looked for in all that is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from urllib.parse import unquote

HIDDEN = "***"
#: Shorter ones are not looked for: ordinary words hold them, and would be made unreadable.
SECRET_CHARS_MIN = 4
#: A scheduler reads its webhook's file at each run, and somebody may change it each time.
_SECRETS_MAX = 200
#: The password that every new Cassandra has. It is no secret, and would hide the name everywhere.
_NO_SECRETS = frozenset({"cassandra"})

#: Each spelling once, the latest last.
_known: dict[str, None] = {}
#: Made of `_known` when it is first needed.
_pattern: re.Pattern[str] | None = None

#: How Python and JSON write characters in a quoted text.
_NAMED = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f", "\v": "v", "\a": "a"}
_QUOTED = frozenset("\"'/")
#: No encoder writes these in another way.
_PLAIN = frozenset("-._")
#: A backslash, written once more for each text that quotes another.
_BACKSLASHES = r"\\{1,8}"


def remember(secret: str) -> None:
    """Hide this secret from now on, however it is spelled; of several lines, each for itself."""
    global _pattern
    for text in {secret, *secret.splitlines()}:
        if len(text) < SECRET_CHARS_MIN or text.isspace() or text in _NO_SECRETS or text in _known:
            continue
        _known[text] = None
        _pattern = None
    while len(_known) > _SECRETS_MAX:
        del _known[next(iter(_known))]


def remember_url(url: str) -> None:
    """The same for the password in a URL: as it is written, and as clients understand it."""
    before, found, rest = url.partition("://")
    identity, at, _ = (rest if found else before).rpartition("@")
    _, colon, password = identity.partition(":")
    if not at or not colon:
        return
    # Python's parser of URLs leaves out line ends and tabs.
    for spelled in (password, re.sub(r"[\t\r\n]", "", password)):
        remember(spelled)
        remember(unquote(spelled))


def hide(text: str) -> str:
    """The text with each remembered secret in it as `***`: as it is, percent-encoded, or escaped
    as in a quoted text. Of two that begin in one place the longer is hidden."""
    global _pattern
    if not _known:
        return text
    if _pattern is None:
        longest_first = sorted(_known, key=len, reverse=True)
        _pattern = re.compile("|".join(map(_spellings, longest_first)))
    return _pattern.sub(HIDDEN, text)


def _spellings(secret: str) -> str:
    """A pattern of all ways to write the secret. What repeats in it is bounded, so that looking
    takes linear time."""
    return "".join(_runs(secret))


def _runs(secret: str) -> Iterator[str]:
    """Runs of blanks and of backslashes count as one: quoting and wrapping make them longer."""
    for kind, group in groupby(secret, _kind):
        run = "".join(group)
        if kind == "blank":
            # No way to read a blank twice: looking would take exponential time.
            ways = {way for character in run for way in _other_ways(character)}
            yield rf"(?:\s|{'|'.join(sorted(ways))}){{1,{2 * len(run) + 8}}}"
        elif kind == "backslash":
            yield rf"(?:\\|%(?:25)*5[Cc]){{{len(run)},{4 * len(run)}}}"
        else:
            yield from map(_character, run)


def _kind(character: str) -> str:
    return "blank" if character.isspace() else "backslash" if character == "\\" else ""


def _character(character: str) -> str:
    """A pattern of the ways to write one character."""
    plain = re.escape(character)
    if (character.isascii() and character.isalnum()) or character in _PLAIN:
        return plain
    if character == "%":
        return "%(?:25)*"
    return f"(?:{'|'.join([plain, *_other_ways(character)])})"


def _other_ways(character: str) -> list[str]:
    """Patterns of the ways to write a character that are not the character."""
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
    """Hexadecimal digits in either case."""
    return "".join(
        f"[{digit}{digit.upper()}]" if digit.isalpha() else digit
        for digit in f"{number:0{digits}x}"
    )
