"""Read a stream as UTF-8 whose encoding does not show where records end.

Other encodings are decoded block by block, after records are found: see `CsvDialect.decoding`.
"""

import codecs
import re
import sys
from collections.abc import Callable
from functools import cache

from ringhaul.errors import SourceCorrupt, UsageError
from ringhaul.formats.pieces import Stream

#: UTF-7 has runs of characters of any length. A record in it can be at most this long.
HELD_BYTES_MAX = 16 << 20


class Transcoded:
    """A stream in any encoding, decoded to UTF-8.

    Bytes that are invalid in the encoding are marked. Raises `SourceCorrupt`, which begins with
    `path`, for what cannot be decoded at all: UTF-16 without a byte order mark, or a run of more
    than `HELD_BYTES_MAX` bytes that is not a complete character.
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
            # A decoder re-examines the bytes it holds: doubling the reads keeps the total linear.
            data = self.inner.read(max(size, held_bytes))
            self.at_end = not data
            try:
                self.ready = _utf_8(self.decoder.decode(data, final=self.at_end))
            except UnicodeError as error:
                raise SourceCorrupt(f"{self.path}: {self._advice(error)}") from error
            held_bytes = 0 if self.ready else len(self.decoder.getstate()[0])
            if held_bytes > HELD_BYTES_MAX:
                raise SourceCorrupt(
                    f"{self.path}: cannot be decoded as {self.encoding}: a run of more "
                    f"than {HELD_BYTES_MAX:,} bytes is not a complete character; give the encoding "
                    "it has"
                )
        given, self.ready = self.ready[:size], self.ready[size:]
        return given

    def _advice(self, error: UnicodeError) -> str:
        """Return what to do about bytes that are invalid in the encoding."""
        if self.encoding in ("utf-16", "utf-32"):
            name = self.encoding
            return (
                f"does not begin with the byte order mark of {name}; give its encoding as "
                f"{name}-le or, if each character's high byte comes first, {name}-be"
            )
        return f"cannot be decoded as {self.encoding}: {error}; give the encoding it has"


#: Surrogates, which UTF-8 cannot hold: UTF-7 and escapes can produce them, and our mark is one.
_HALVES = re.compile("[\ud800-\udfff]")


def _utf_8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _HALVES.sub("\udcff", text).encode("utf-8", "surrogateescape")


def _mark_undecodable(error: UnicodeError) -> tuple[str, int]:
    """Replace an undecodable byte by the mark that becomes 0xFF, as in `decode_bytes`."""
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff", error.end


codecs.register_error("ringhaul.mark", _mark_undecodable)


def encoder_of(encoding: str) -> Callable[[bytes], bytes]:
    """Return a function that turns text from `Transcoded` back into its encoding, part by part.

    Only the first part gets a byte order mark. What could not be decoded, or does not exist in the
    encoding, becomes undecodable bytes, so that it is never read as something else. Raises
    `UsageError` if the encoding has no such bytes.
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
    """Return bytes that are invalid in the encoding, whatever follows them."""
    if encoding in ("utf-16", "utf-32"):
        encoding += "-le" if sys.byteorder == "little" else "-be"
    if encoding.startswith(("utf-16", "utf-32")):
        return "\udcff".encode(encoding, "surrogatepass")
    # The last candidates are for single-byte tables with gaps.
    for found in (b"\xff", b"\x81\xff", *(bytes([byte]) for byte in range(256))):
        try:
            (found + b"A0").decode(encoding)
        except UnicodeDecodeError:
            return found
    raise UsageError(f"records that are not valid {encoding} cannot be written as {encoding}")
