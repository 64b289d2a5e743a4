"""The beginning of a source: read once, kept, and read on where a later question needs more."""

from __future__ import annotations

import io
import threading

from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.pieces import Stream
from ringhaul.sources.files import check_unchanged, decoded, open_stored
from ringhaul.sources.source import SourceFile

#: Bytes read at a time of text that is skipped.
SKIP_BYTES = 1 << 20


class Beginning:
    """The text of a source from its first byte on, decompressed and decoded as `open_whole` does.

    The source is opened by the first read. What follows the kept bytes is read from the stream that
    is open, which seeks if the source is read by ranges; only a stream that has passed the wanted
    place, or was closed, is opened again. Threads may share a beginning.
    """

    def __init__(self, source: SourceFile, dialect: CsvDialect, keep_bytes: int) -> None:
        """`keep_bytes`: the most that is kept."""
        self.source = source
        self._dialect, self._keep_bytes = dialect, keep_bytes
        self._kept = bytearray()
        self._file: io.RawIOBase | None = None
        self._stream: Stream | None = None
        self._at = 0  # place of the stream in the text
        self._size_bytes: int | None = None  # size of the text, once its end was read
        #: (place in the text, place in the stored bytes) after each read of a stream that is read
        #: from the beginning to the end, as far as the text is kept.
        self._marks: list[tuple[int, int]] = []
        self._lock = threading.Lock()

    @property
    def kept_bytes(self) -> int:
        """Size of the text that is kept."""
        return len(self._kept)

    @property
    def is_open(self) -> bool:
        """Whether a stream is open."""
        return self._file is not None

    def decodes_like(self, dialect: CsvDialect) -> bool:
        """Whether the text is the same in `dialect`."""
        mine = self._dialect
        encodings = {one.encoding if one.decoding == "stream" else None for one in (mine, dialect)}
        return len(encodings) == 1

    def read(self, at: int, size: int) -> bytes:
        """Return at most `size` bytes of the text from its byte `at` on; none only at its end.

        Raises `SourceMissing`, `SourceChanged`, `SourceUnavailable` and `SourceCorrupt`.
        """
        with self._lock:
            if at < len(self._kept):
                return bytes(memoryview(self._kept)[at : at + size])
            if self._size_bytes is not None and at >= self._size_bytes:
                return b""
            try:
                self._go(at)
                return self._next(size) if self._at == at else b""
            except BaseException:
                self._close()
                raise

    def read_up_to(self, at: int, size: int) -> bytes:
        """Return `size` bytes of the text from its byte `at` on, or all that follow."""
        pieces, end = [], at + size
        while at < end and (piece := self.read(at, end - at)):
            pieces.append(piece)
            at += len(piece)
        return b"".join(pieces)

    def stored_bytes_at(self, at: int) -> int | None:
        """Return how many stored bytes were read for the first `at` bytes of the text; None if that
        is not known, as the text was read on without being kept."""
        return next((stored for place, stored in self._marks if place >= at), None)

    def stream(self, at: int = 0) -> Stream:
        """Return the text from its byte `at` on as a stream."""
        return _Following(self, at)

    def close(self) -> None:
        """Close the stream; the kept bytes stay."""
        with self._lock:
            self._close()

    def _go(self, at: int) -> None:
        """Bring the stream to a place behind the kept bytes, or to the end of the text."""
        if self._stream is None or (self.source.whole and self._at > at):
            self._close()
            self._open()
        if self._at != at and not self.source.whole:
            assert isinstance(self._stream, io.BufferedReader)
            self._at = self._stream.seek(min(at, self.source.size_bytes))
        while self._at < at and self._next(min(at - self._at, SKIP_BYTES)):
            pass

    def _open(self) -> None:
        check_unchanged(self.source)
        self._file = open_stored(self.source)
        self._stream, self._at = decoded(self.source, self._file, self._dialect), 0

    def _next(self, size: int) -> bytes:
        """Return the next bytes of the stream, which are kept if they continue the kept ones."""
        assert self._stream is not None and self._file is not None
        data = self._stream.read(size)
        if self._at == len(self._kept):
            self._kept += data[: self._keep_bytes - len(self._kept)]
            if self.source.whole:
                self._marks.append((self._at + len(data), self._file.tell()))
        self._at += len(data)
        if not data or (not self.source.whole and self._at == self.source.size_bytes):
            self._size_bytes = self._at
            self._close()  # no later read needs it
        return data

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self._stream = None


class _Following:
    """A stream of a beginning's text from some place on."""

    def __init__(self, beginning: Beginning, at: int) -> None:
        self._beginning, self._at = beginning, at

    def read(self, size: int, /) -> bytes:
        data = self._beginning.read(self._at, size)
        self._at += len(data)
        return data
