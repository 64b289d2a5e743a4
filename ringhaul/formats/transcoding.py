"""A stream in an encoding that does not show where records end, read as UTF-8.

Other encodings are decoded block by block, once records are found: see `CsvDialect.decoding`.
"""

import codecs
import re
import sys
from collections.abc import Callable
from functools import cache

from ringhaul.errors import SourceCorrupt, UsageError
from ringhaul.formats.pieces import Stream

#: UTF-7 has characters in runs of any length. A record is at most so long.
HELD_BYTES_MAX = 16 << 20


class Transcoded:
    """A stream decoded from any encoding, as UTF-8.

    Bytes that are no character of it are marked. What cannot be decoded at all raises
    `SourceCorrupt` that begins with `path`: a UTF-16 text without its byte order mark, or a run of
    more than `HELD_BYTES_MAX` bytes that is no whole character.
    """

    def __init__(self, inner: Stream, encoding: str, path: str) -> None:
        self.inner = inner
        self.encoding, self.path = encoding, path
        self.decoder = codecs.getincrementaldecoder(encoding)("ringhaul.mark")
        self.ready = b""
        self.at_end = False

    def read(self, size: int, /) -> bytes:
        held_bytes = 0
        while not self.ready and not self.at_end:
            # A decoder looks again at what it holds: growing twofold keeps the sum linear.
            data = self.inner.read(max(size, held_bytes))
            self.at_end = not data
            try:
                self.ready = _utf_8(self.decoder.decode(data, final=self.at_end))
            except UnicodeError as error:
                raise SourceCorrupt(f"{self.path}: {self._advice(error)}") from error
            held_bytes = 0 if self.ready else len(self.decoder.getstate()[0])
            if held_bytes > HELD_BYTES_MAX:
                raise SourceCorrupt(
                    f"{self.path}: cannot be decoded as {self.encoding}: a run of more than "
                    f"{HELD_BYTES_MAX:,} bytes is no whole character; give the encoding it has"
                )
        given, self.ready = self.ready[:size], self.ready[size:]
        return given

    def _advice(self, error: UnicodeError) -> str:
        """What to do about bytes that the decoder takes for no text in its encoding."""
        if self.encoding in ("utf-16", "utf-32"):
            name = self.encoding
            return (
                f"does not begin with the byte order mark of {name}; give its encoding as "
                f"{name}-le or, if each character's high byte comes first, {name}-be"
            )
        return f"cannot be decoded as {self.encoding}: {error}; give the encoding it has"


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
