"""Warn if a text that is read in a single-byte encoding was most likely written in another.

In such an encoding almost every byte is a character, so nothing is rejected: a euro sign of
Windows becomes a control character in latin-1, and UTF-8 becomes two characters for one.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ringhaul.cql.column import quote
from ringhaul.cql.hints import WESTERN
from ringhaul.formats.dialect import CsvDialect
from ringhaul.option_names import input_option

#: Encodings of Western languages, in whose text the bytes of UTF-8 hardly ever follow each other.
_WESTERN = ("iso8859-1", "iso8859-15", WESTERN)
_UTF_8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
#: Bytes on each side of the place that a warning shows.
_AROUND_BYTES = 12


def find_encoding_warnings(data: bytes, dialect: CsvDialect) -> list[str]:
    """Return the warnings, a sentence each; `data`: the beginning of a file, as it is stored."""
    if dialect.decoding != "block" or data.isascii():
        return []
    found = (_utf_8(data, dialect), _control_characters(data, dialect))
    return [warning for warning in found if warning][:1]


def _control_characters(data: bytes, dialect: CsvDialect) -> str:
    places = _control_bytes(dialect.encoding)
    found = places.search(data) if places else None
    if found is None:
        return ""
    line = 1 + data.count(b"\n", 0, found.start())
    here = _around(data, found, WESTERN)
    return (
        f"line {line}: byte 0x{found[0][0]:02x} is a control character in {dialect.encoding}; "
        f"{input_option('encoding')} {WESTERN} reads it as {here}"
    )


def _utf_8(data: bytes, dialect: CsvDialect) -> str:
    if dialect.encoding not in _WESTERN:
        return ""
    found = _UTF_8.search(data)
    if found is None:
        return ""
    line = 1 + data.count(b"\n", 0, found.start())
    return (
        f"line {line}: {_around(data, found, dialect.encoding)} are the bytes of "
        f"{_around(data, found, 'utf-8')} in UTF-8: leave {input_option('encoding')} out if the "
        "file is in UTF-8"
    )


def _around(data: bytes, found: re.Match[bytes], encoding: str) -> str:
    """Return a place and what is next to it on its line, in an encoding."""
    start, end = found.span()
    before = data[max(0, start - _AROUND_BYTES) : start].rpartition(b"\n")[2]
    after = data[end : end + _AROUND_BYTES].partition(b"\n")[0].rstrip(b"\r")
    if encoding == "utf-8":  # the cuts may be within characters
        before, after = before.lstrip(bytes(range(0x80, 0xC0))), b""
    return quote((before + found[0] + after).decode(encoding, "replace"))


@lru_cache
def _control_bytes(encoding: str) -> re.Pattern[bytes] | None:
    """Return a pattern of bytes that are control characters beyond ASCII; None: no byte is."""
    found = bytes(
        byte
        for byte in range(0x80, 0x100)
        if "\x80" <= bytes([byte]).decode(encoding, "replace") <= "\x9f"
    )
    return re.compile(b"[" + re.escape(found) + b"]") if found else None
