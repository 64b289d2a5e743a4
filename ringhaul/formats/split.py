"""Cut a source into units for workers, and a unit into blocks for the parser.

Both are views of the same pieces (`pieces.py`), so they hold the same records in the same order.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.pieces import START, Piece, Position, Stream, read_pieces
from ringhaul.formats.record_end import Tick, no_tick
from ringhaul.formats.records import Offsets, count_line_ends

__all__ = [
    "START",
    "Block",
    "Position",
    "Stream",
    "UnitRange",
    "read_blocks",
    "split_units",
]

#: Large enough that the cost per chunk vanishes, small enough to stay in the CPU's cache.
SPLIT_CHUNK_BYTES = 2**20


class Block(NamedTuple):
    """A run of records in memory, or one defective record."""

    #: Bytes of the records; of a long defective record only the beginning.
    data: bytes
    #: Position of the first byte of `data`.
    position: Position
    #: Offsets into `data`; `ends` exclude the line ends.
    starts: Offsets
    ends: Offsets
    #: Why the only record here must not be parsed; None: parse all records.
    defect: str | None
    #: Bytes of the source that the block covers: more than `data` if that was cut.
    size_bytes: int
    #: The dialect's `line_end`.
    line_end: str = "any"

    @property
    def records_count(self) -> int:
        return len(self.starts)


class UnitRange(NamedTuple):
    """A range of a source that begins and ends at record boundaries."""

    offset_bytes: int
    length_bytes: int
    first_ordinal: int
    first_line: int
    records_count: int
    #: Why the only record of this unit must not be parsed; None: parse all records.
    defect: str | None


def read_blocks(
    stream: Stream,
    dialect: CsvDialect,
    *,
    block_bytes: int,
    start: Position,
    tick: Tick = no_tick,
    complete: str | None = None,
) -> Iterator[Block]:
    """Yield all records of `stream`, which is positioned at `start` and ends with a record.

    A block holds at least one record, and about `block_bytes` unless a single record is longer.
    `tick`, `complete`: see `read_pieces`.
    """
    pieces = read_pieces(
        stream, dialect, chunk_bytes=block_bytes, start=start, tick=tick, complete=complete
    )
    for piece in pieces:
        if len(piece.starts):
            data = piece.buffer[: piece.size_bytes]
            yield Block(
                *(data, piece.position, piece.starts, piece.ends),
                *(piece.defect, piece.size_bytes, piece.line_end),
            )


def split_units(
    stream: Stream,
    dialect: CsvDialect,
    *,
    unit_bytes: int,
    start: Position,
    complete: str | None = None,
) -> Iterator[UnitRange]:
    """Yield units that cover `stream`, which is positioned at `start`, without gap or overlap.

    A unit ends with the first record that makes it at least `unit_bytes` long; a defective
    record is a unit by itself. Blank lines and comments join a neighbouring unit, or form one
    without records if there is no neighbour to join. `complete`: see `read_pieces`.
    """
    held: UnitRange | None = None
    for unit in _units(stream, dialect, max(1, unit_bytes), start, complete):
        if held is not None and unit.records_count == 0 and held.defect is None:
            held = held._replace(length_bytes=held.length_bytes + unit.length_bytes)
            continue
        if held is not None:
            yield held
        held = unit
    if held is not None:
        yield held


def _units(
    stream: Stream, dialect: CsvDialect, unit_bytes: int, start: Position, complete: str | None
) -> Iterator[UnitRange]:
    begin = here = start
    pieces = read_pieces(
        stream, dialect, chunk_bytes=SPLIT_CHUNK_BYTES, start=start, complete=complete
    )
    for piece in pieces:
        if piece.defect is not None:
            if piece.position.offset_bytes > begin.offset_bytes:
                yield _unit(begin, piece.position)
            here = piece.end
            yield _unit(piece.position, here, piece.defect)
            begin = here
            continue
        for end in _unit_ends(piece, begin, unit_bytes):
            yield _unit(begin, end)
            begin = end
        here = piece.end
    if here.offset_bytes > begin.offset_bytes:
        yield _unit(begin, here)


def _unit_ends(piece: Piece, begin: Position, unit_bytes: int) -> Iterator[Position]:
    """Yield the positions in the piece where units end; the first unit starts at `begin`."""
    base = piece.position
    count = len(piece.ends)
    done, done_bytes, line = 0, 0, base.line
    begin_bytes = begin.offset_bytes - base.offset_bytes
    while True:
        last = int(np.searchsorted(piece.ends, begin_bytes + unit_bytes))
        last = max(last, done)
        if last >= count:
            return
        end_bytes = int(piece.ends[last])
        line_end = piece.buffer[end_bytes : end_bytes + 2]
        # JSON objects may follow each other without one.
        end_bytes += 2 if line_end == b"\r\n" else int(line_end[:1] in (b"\r", b"\n"))
        line += count_line_ends(piece.buffer, done_bytes, end_bytes, piece.line_end)
        done, done_bytes, begin_bytes = last + 1, end_bytes, end_bytes
        yield Position(base.offset_bytes + end_bytes, base.ordinal + done, line)


def _unit(begin: Position, end: Position, defect: str | None = None) -> UnitRange:
    return UnitRange(
        begin.offset_bytes,
        end.offset_bytes - begin.offset_bytes,
        begin.ordinal,
        begin.line,
        end.ordinal - begin.ordinal,
        defect,
    )
