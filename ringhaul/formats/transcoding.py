"""A stream in an encoding that does not show where records end, read as UTF-8.

Other encodings are decoded block by block, once records are found: see `CsvDialect.decoding`.
"""

import codecs

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
            text = self.decoder.decode(data, final=self.at_end)
            self.ready = text.encode("utf-8", "surrogateescape")
        given, self.ready = self.ready[:size], self.ready[size:]
        return given


def _mark_undecodable(error: UnicodeError) -> tuple[str, int]:
    """Stand in for what cannot be decoded: becomes the byte 0xFF, as in `decode_bytes`."""
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff", error.end


codecs.register_error("ringhaul.mark", _mark_undecodable)
