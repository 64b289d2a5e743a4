"""A stream in an encoding that does not show where records end, read as UTF-8.

Other encodings are decoded block by block, once records are found: see `CsvDialect.decoding`.
"""

import codecs
import re
import sys
from collections.abc import Callable
from functools import cache

from ringhaul.errors import UsageError
from ringhaul.formats.pieces import Stream


class Transcoded:
    """A stream decoded from any encoding, as UTF-8."""

    def __init__(self, inner: Stream, encoding: str) -> None:
        self.inner = inner
        self.decoder = codecs.getincrementaldecoder(encoding)("ringhaul.mark")
        self.ready = b""
        self.at_end = False

    def read(self, size: int, /) -> bytes:
        while not self.ready and not self.at_end:
            data = self.inner.read(size)
            self.at_end = not data
            self.ready = _utf_8(self.decoder.decode(data, final=self.at_end))
        given, self.ready = self.ready[:size], self.ready[size:]
        return given


#: Halves of characters, which UTF-8 does not know: UTF-7 and escapes can spell them, and one of
#: them is the mark.
_HALVES = re.compile("[\ud800-\udfff]")


def _utf_8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _HALVES.sub("\udcff", text).encode("utf-8", "surrogateescape")


def _mark_undecodable(error: UnicodeError) -> tuple[str, int]:
    """Stand in for what cannot be decoded: becomes the byte 0xFF, as in `decode_bytes`."""
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff", error.end


codecs.register_error("ringhaul.mark", _mark_undecodable)


def encoder_of(encoding: str) -> Callable[[bytes], bytes]:
    """Turns text that `Transcoded` gave back into its encoding, one part after the other: a byte
    order mark stands only at the beginning.

    What could not be decoded, and what the encoding does not have, becomes bytes that cannot be
    decoded: it must not be read as something else. Raises `UsageError` where there are none.
    """
    name = codecs.lookup(encoding).name
    errors = f"ringhaul.unmark.{name}"
    codecs.register_error(errors, lambda error: (_undecodable(name), _end(error)))
    encoder = codecs.getincrementalencoder(name)(errors)
    return lambda text: encoder.encode(text.decode("utf-8", "surrogateescape"))


def _end(error: UnicodeError) -> int:
    assert isinstance(error, UnicodeEncodeError)
    return error.end


@cache
def _undecodable(encoding: str) -> bytes:
    """Bytes that the encoding does not know, whatever follows them."""
    if encoding in ("utf-16", "utf-32"):
        encoding += "-le" if sys.byteorder == "little" else "-be"
    if encoding.startswith(("utf-16", "utf-32")):
        return "\udcff".encode(encoding, "surrogatepass")
    # The last are for tables of bytes that are not full.
    for found in (b"\xff", b"\x81\xff", *(bytes([byte]) for byte in range(256))):
        try:
            (found + b"A0").decode(encoding)
        except UnicodeDecodeError:
            return found
    raise UsageError(f"records that are no {encoding} cannot be written as {encoding}")
