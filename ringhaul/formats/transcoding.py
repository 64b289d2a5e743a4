"""A stream in an encoding that does not show where records end, read as UTF-8.

Other encodings are decoded block by block, once records are found: see `CsvDialect.decoding`.
"""

import codecs
import re

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
