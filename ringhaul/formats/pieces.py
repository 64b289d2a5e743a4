"""Cut a stream of bytes into pieces at record boundaries, in bounded memory.

A piece is either a run of records that can be parsed, or one defective record that must not be:

- a record longer than ``record_bytes_max`` with no quote open at that length: it extends to its
  line end, and is read past without being held;
- a record whose quote is not closed within ``record_bytes_max``, or before the end of the input:
  it goes from its first line to the end of the line on which the quote opens, and reading
  resumes on the next line, so that one forgotten quote costs one record and not the file.

Both depend only on the bytes from the record's start on, never on how the stream was chunked. So
all readers that start at a record see the same records from there.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from ringhaul.errors import SourceCorrupt
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.json_documents import Nesting
from ringhaul.formats.record_end import Tick, first_record, no_tick
from ringhaul.formats.records import (
    Offsets,
    count_line_ends,
    first_document,
    is_record,
    scan_records,
)
from ringhaul.option_names import input_option

BOM = b"\xef\xbb\xbf"
#: Bytes read at a time between two ticks.
READ_BYTES = 4 * 2**20
#: How much of a defective record is kept for messages and exports.
DEFECT_BYTES_MAX = 64 * 2**10


class Stream(Protocol):
    """A source of bytes: `read` returns at most `size` bytes, and none only at the end."""

    def read(self, size: int, /) -> bytes: ...


class Position(NamedTuple):
    """A place in a source."""

    #: Bytes from the start of the source.
    offset_bytes: int
    #: Number of the next record in the whole job, from 0.
    ordinal: int
    #: Number of the physical line, from 1.
    line: int


START = Position(offset_bytes=0, ordinal=0, line=1)


class Piece(NamedTuple):
    """A piece, `buffer[:size_bytes]`; of a long defective record only the beginning is kept."""

    buffer: bytes
    #: Bytes of the source that the piece covers.
    size_bytes: int
    position: Position
    #: Where the next piece begins.
    end: Position
    #: Offsets into `buffer`.
    starts: Offsets
    ends: Offsets
    #: Why the only record of this piece must not be parsed; None: parse all records.
    defect: str | None
    #: The dialect's `line_end`.
    line_end: str


def read_pieces(
    stream: Stream,
    dialect: CsvDialect,
    *,
    chunk_bytes: int,
    start: Position,
    tick: Tick = no_tick,
    complete: str | None = None,
) -> Iterator[Piece]:
    """Yield the pieces of `stream`, which is positioned at `start`, without gaps.

    A piece has at most about two chunks, or one record. Holds at most twice `chunk_bytes` +
    ``record_bytes_max`` at a time. A byte order mark at offset 0 belongs to no piece. `tick` is
    called after every few MiB that are read or searched for the end of a record.

    `complete`: the name of the file, if the stream is all of it; None: the stream is a part of a
    file. Raises `SourceCorrupt` at the end of a complete file that was cut short.
    """
    cutter = _Cutter(stream, dialect, chunk_bytes, start, tick)
    cutter.skip_bom()
    while cutter.fill():
        yield from cutter.cut()
    if complete is not None:
        cutter.check_end(complete)


class _Cutter:
    """The unread rest of a stream, from a record boundary on."""

    def __init__(
        self,
        stream: Stream,
        dialect: CsvDialect,
        chunk_bytes: int,
        start: Position,
        tick: Tick,
    ) -> None:
        self.stream = stream
        self.dialect = dialect
        self.chunk_bytes = max(1, chunk_bytes)
        self.position = start
        self.tick = tick
        self.buffer = b""
        self.at_end = False
        #: Nesting after the JSON that was taken; None: it has an open object, which is a reject.
        self.nesting: Nesting | None = Nesting()

    def fill(self) -> bool:
        """Read more; return False if nothing is left to cut."""
        # A record longer than a chunk is scanned again with each chunk: growing fourfold keeps
        # the total linear. Two bytes more than a record decide whether it is too long.
        held_bytes = len(self.buffer)
        growth_bytes = min(3 * held_bytes, self.dialect.record_bytes_max + 2 - held_bytes)
        self._read(max(self.chunk_bytes, growth_bytes))
        return bool(self.buffer)

    def skip_bom(self) -> None:
        if self.position.offset_bytes == 0:
            self._read(len(BOM))
            if self.buffer.startswith(BOM):
                self.buffer = self.buffer[len(BOM) :]
                self.position = self.position._replace(offset_bytes=len(BOM))

    def cut(self) -> Iterator[Piece]:
        """Yield all complete pieces in the buffer; keep the rest."""
        longest = self.dialect.record_bytes_max
        while True:
            # After a record that was held or given up for its length, the rest of the buffer may be
            # as long as that record: too long for one piece.
            window = self.buffer[: 2 * self.chunk_bytes]
            whole = len(window) == len(self.buffer)
            scan = scan_records(window, self.dialect, final=whole and self.at_end)
            if not whole and not scan.consumed_bytes and self.dialect.json_layout != "lines":
                # A JSON object, or a comment before one, fills the window.
                scan, whole = scan_records(self.buffer, self.dialect, final=self.at_end), True
            too_long = np.flatnonzero(scan.ends - scan.starts > longest)
            if len(too_long):
                whole_count = int(too_long[0])
                if self.dialect.json_layout != "lines":
                    before = self.buffer[: int(scan.starts[whole_count])]
                    self._note(scan_records(before, self.dialect, final=True).nesting)
                yield from self._take(
                    int(scan.starts[whole_count]),
                    scan.starts[:whole_count],
                    scan.ends[:whole_count],
                )
                yield self._take_defect()
                continue
            self._note(scan.nesting)
            yield from self._take(scan.consumed_bytes, scan.starts, scan.ends)
            if not self.buffer:
                return
            if not whole:
                if not scan.consumed_bytes:
                    # One record fills the window, and may end beyond it.
                    end = self._end_of_first()
                    if end is not None and (end <= longest or not self._begins_record(end)):
                        yield from self._take_first(end)
                        continue
                    if end is None and not self.at_end and len(self.buffer) < longest + 2:
                        return
                    yield self._take_defect()
                continue
            # The rest is a record without its end. At the end of the input only an open quote
            # leaves one; before that, it may still end, unless it is too long already.
            if not self.at_end and len(self.buffer) < longest + 2:
                return
            yield self._take_defect()

    def check_end(self, path: str) -> None:
        """Raise `SourceCorrupt` if the brackets of a file of JSON show that it was cut short."""
        if self.nesting is None or self.nesting == Nesting():
            return
        if self.nesting.in_comment:
            raise SourceCorrupt(
                f"{path}: a comment that begins with /* is not closed at the end of the file: the "
                "file was cut short, or what follows the comment was not read; close it with */"
            )
        if self.nesting.lowest < 0:
            raise SourceCorrupt(
                f"{path}: a ] stands where no JSON array is open: the file is damaged, or parts of "
                "several files were put together; get it complete, or remove the bracket"
            )
        or_close = ", or, if none is missing, end it with ]" if self.nesting.depth == 1 else ""
        raise SourceCorrupt(
            f"{path}: the JSON array is not closed at the end of the file (byte "
            f"{self.position.offset_bytes:,}, line {self.position.line:,}): it was cut short, and "
            f"objects are probably missing; get it complete{or_close}"
        )

    def _note(self, nesting: Nesting) -> None:
        if self.nesting is not None:
            self.nesting = self.nesting.and_then(*nesting)

    def _end_of_first(self) -> int | None:
        """Return where the record at the start of the buffer ends; None: not in the buffer."""
        if self.dialect.json_layout != "lines":
            return first_document(self.buffer, self.dialect)
        return first_record(self.buffer, self.dialect, final=self.at_end, tick=self.tick).end

    def _begins_record(self, end: int) -> bool:
        """Return whether what ends at `end` of the buffer is a record. Nothing else is too long."""
        return self.dialect.json_layout != "lines" or is_record(self.buffer, end, self.dialect)

    def _take_first(self, end: int) -> Iterator[Piece]:
        """Take the line that ends at `end` of the buffer, which may not be a record."""
        if self.dialect.json_layout != "lines":
            yield from self._take(end, np.zeros(1, np.int64), np.full(1, end, np.int64))
            return
        found = np.zeros(int(is_record(self.buffer, end, self.dialect)), np.int64)
        line_end = self.buffer[end : end + 2]
        size_bytes = end + (2 if line_end == b"\r\n" else min(1, len(line_end)))
        yield from self._take(size_bytes, found, found + end)

    def _take(self, size_bytes: int, starts: Offsets, ends: Offsets) -> Iterator[Piece]:
        if size_bytes == 0:
            return
        buffer, position = self.buffer, self.position
        self.buffer = buffer[size_bytes:]
        self.position = Position(
            position.offset_bytes + size_bytes,
            position.ordinal + len(starts),
            position.line + count_line_ends(buffer, 0, size_bytes, self.dialect.line_end),
        )
        line_end = self.dialect.line_end
        yield Piece(buffer, size_bytes, position, self.position, starts, ends, None, line_end)

    def _take_defect(self) -> Piece:
        """Take the record at the start of the buffer, which is too long or has an open quote."""
        if self.dialect.json_layout != "lines":
            return self._take_unclosed()
        longest, position = self.dialect.record_bytes_max, self.position
        line_end = self.dialect.line_end
        comment = self.dialect.comment
        is_comment = comment is not None and self.buffer.startswith(comment.encode())
        quote = None
        if not is_comment:
            held = first_record(
                self.buffer, self.dialect, final=False, size_bytes=longest, tick=self.tick
            )
            quote = held.open_quote
        certain_bytes = min(len(self.buffer), longest) if quote is None else quote
        lines_before = count_line_ends(self.buffer, 0, certain_bytes, line_end)
        line = position.line + lines_before
        defect = None
        if quote is not None:
            line_start = 1 + self.buffer.rfind(b"\n", 0, quote)
            if line_end == "any":
                line_start = max(line_start, 1 + self.buffer.rfind(b"\r", 0, quote))
            # A reader of the unit with only this record cannot tell which of the two is true.
            defect = (
                f"line {line}: the quote that opens at byte {quote - line_start + 1} of the line "
                f"is not closed within {longest:,} bytes or before the end of the input; close it, "
                "or double it if it belongs to the value, or give another "
                f"{input_option('quote')}"
            )
        elif not is_comment:
            # Without quotes, as in JSON Lines, a record is a line.
            what, advice = (
                ("line", "put each record on its own line")
                if self.dialect.quote is None
                else (
                    "record",
                    f"check that {input_option('delimiter')} and "
                    f"{input_option('quote')} fit the file",
                )
            )
            defect = (
                f"line {position.line}: the {what} is longer than {longest:,} bytes, the most "
                f"that is read; shorten it, or {advice}"
            )
        kept, size_bytes, line_ended = self._read_past_line_end(certain_bytes)
        count = 0 if defect is None else 1
        self.position = Position(
            position.offset_bytes + size_bytes, position.ordinal + count, line + line_ended
        )
        starts = np.zeros(count, np.int64)
        line_ends = b"\r\n" if line_end == "any" else b"\n"
        ends = np.full(count, len(kept.rstrip(line_ends)), np.int64)
        return Piece(kept, size_bytes, position, self.position, starts, ends, defect, line_end)

    def _take_unclosed(self) -> Piece:
        """Take a JSON object that is not closed, and all that follows it, which may be
        its own parts, which must not be read as records."""
        position, line_end = self.position, self.dialect.line_end
        kept, dropped_bytes, lines = self.buffer[:DEFECT_BYTES_MAX], 0, 0
        longest = self.dialect.record_bytes_max
        end = first_document(self.buffer, self.dialect)
        if end is not None:
            defect = (
                f"line {position.line}: the record is longer than {longest:,} bytes, the most that "
                "is read; shorten it"
            )
            lines = count_line_ends(self.buffer, 0, end, line_end)
            dropped_bytes, self.buffer = end, self.buffer[end:]
            kept = kept[:end]
            return self._defective(kept, dropped_bytes, lines, defect)
        self.nesting = None
        while self.buffer:
            lines += count_line_ends(self.buffer, 0, len(self.buffer), line_end)
            dropped_bytes += len(self.buffer)
            self.buffer = b""
            self._read(self.chunk_bytes)
        defect = (
            f"line {position.line}: the JSON object that begins here is not closed within "
            f"{longest:,} bytes or before the end of the input; nothing "
            "from here on was read: close it, and load the file again"
        )
        return self._defective(kept, dropped_bytes, lines, defect)

    def _defective(self, kept: bytes, size_bytes: int, lines: int, defect: str) -> Piece:
        """Return a piece of one JSON object that must not be parsed, and continue after it."""
        position = self.position
        self.position = Position(
            position.offset_bytes + size_bytes, position.ordinal + 1, position.line + lines
        )
        starts, ends = np.zeros(1, np.int64), np.full(1, len(kept), np.int64)
        line_end = self.dialect.line_end
        return Piece(kept, size_bytes, position, self.position, starts, ends, defect, line_end)

    def _read_past_line_end(self, from_byte: int) -> tuple[bytes, int, bool]:
        """Drop everything up to the first line end at or after `from_byte` of the buffer.

        Returns the beginning of what was dropped, its size, and whether a line end was found.
        """
        kept, dropped_bytes = b"", 0
        line_ends = (b"\n", b"\r") if self.dialect.line_end == "any" else (b"\n",)
        while True:
            found = [self.buffer.find(end, from_byte) for end in line_ends]
            at = min((index for index in found if index >= 0), default=-1)
            is_cr = at >= 0 and self.buffer[at] == ord("\r")
            if at >= 0 and (not is_cr or at + 1 < len(self.buffer) or self.at_end):
                size = at + 1 + (is_cr and self.buffer[at + 1 : at + 2] == b"\n")
                break
            if self.at_end:
                size = len(self.buffer)
                break
            # A CR in the last place waits for the next byte, which may be LF.
            size = at if at >= 0 else len(self.buffer)
            kept += self.buffer[: min(size, DEFECT_BYTES_MAX - len(kept))]
            dropped_bytes += size
            self.buffer = self.buffer[size:]
            from_byte = 0
            self._read(self.chunk_bytes)
        kept += self.buffer[: min(size, DEFECT_BYTES_MAX - len(kept))]
        self.buffer = self.buffer[size:]
        return kept, dropped_bytes + size, at >= 0

    def _read(self, size_bytes: int) -> None:
        """Add `size_bytes` to the buffer, or all that is left."""
        chunks = [self.buffer]
        while size_bytes > 0 and not self.at_end:
            chunk = self.stream.read(min(size_bytes, READ_BYTES))
            self.at_end = not chunk
            chunks.append(chunk)
            size_bytes -= len(chunk)
            self.tick()
        self.buffer = b"".join(chunks)
