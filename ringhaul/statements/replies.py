"""Answers to reads in what a socket gave, found and taken apart many at a time. Pure.

`scan` finds the frames in a buffer in one compiled pass and says of each what it is; of an answer
with rows it says where they are and how many. Nothing of a row is a Python object: `page` lays the
rows of many answers one after another, as if the server had sent them in one page.

The answers' metadata is left out (flag skip_metadata of EXECUTE), so that an answer is

    header of 9 bytes; int kind = 2; int flags; int columns; [bytes paging state]; int rows; rows

with a row's columns as int length and that many bytes each. Source: "CQL BINARY PROTOCOL v4",
sections 2 and 4.2.5.2. Every length is checked against the frame's end: what does not fit is
left to `parse_replies`, or is a `FrameError`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.frames import (
    HEADER_BYTES,
    PROTOCOL_VERSION,
    FrameError,
    Reader,
)

#: What a frame is; as in `kernels.py`, which is imported when it is needed: it loads numba.
OTHER = 0  #: for `parse_replies`: an error, an event, an answer with its metadata
VOID = 1
ROWS = 2  #: the rows of an answer, all or the last of them
MORE = 3  #: a page of rows after which there are more

#: Of a RESULT with rows: its kind, and the flag that says that its columns are not told.
KIND_ROWS = 2
FLAG_NO_METADATA = 0x04
_FLAG_WARNING = 0x08

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


class Found(NamedTuple):
    """The whole frames of a buffer, in their order; one item each."""

    streams: Ints
    kinds: Ints
    frames: Ints  #: where the frame begins
    starts: Ints  #: where its first row begins
    ends: Ints  #: where the frame, and its last row, ends
    counts: Ints  #: rows
    consumed_bytes: int  #: the rest of the buffer is the beginning of the next frame

    @classmethod
    def of(cls, table: NDArray[np.int64], consumed_bytes: int) -> Found:
        """From a table with a row for each of the columns above."""
        streams, kinds, frames, starts, ends, counts = table
        return cls(streams, kinds, frames, starts, ends, counts, consumed_bytes)

    def pick(self, which: NDArray[Any]) -> Found:
        """Some of the frames."""
        return Found.of(np.array([column[which] for column in self[:6]]), self.consumed_bytes)


def scan(data: bytes, columns: int) -> Found:
    """The frames in `data`; answers with rows have `columns` columns.

    Raises `FrameError` for what cannot be an answer.
    """
    from ringhaul.statements.kernels import scan_frames

    table = np.empty((6, len(data) // HEADER_BYTES), np.int64)
    count, consumed, good = scan_frames(np.frombuffer(data, np.uint8), columns, table)
    if not good:
        version, length = data[consumed], struct.unpack_from(">i", data, consumed + 5)[0]
        raise FrameError(
            f"the server sent no native protocol v{PROTOCOL_VERSION} frame: "
            f"version byte {version:#04x}, length {length}"
        )
    return Found.of(table[:, :count], consumed)


class Piece(NamedTuple):
    """Answers of one buffer: of each, whose it is and where its rows are."""

    data: Bytes
    numbers: Ints  #: of the requests
    starts: Ints
    ends: Ints
    counts: Ints  #: rows
    last: NDArray[np.bool_]  #: nothing more comes for the request

    def pick(self, which: NDArray[Any]) -> Piece:
        """Some of the answers."""
        return Piece(self.data, *(column[which] for column in self[1:]))


def page(pieces: Sequence[Piece], columns: int) -> bytes:
    """The body of a RESULT with all the rows of all pieces, one after another.

    Raises `FrameError` if some answer's rows do not end where it ends.
    """
    from ringhaul.statements.kernels import copy_rows

    size = sum(int(piece.ends.sum() - piece.starts.sum()) for piece in pieces)
    rows = sum(int(piece.counts.sum()) for piece in pieces)
    if rows > size:  # each has a cell, and a cell has a length of four bytes
        raise FrameError(f"answers of {size} bytes cannot hold {rows} rows")
    head = struct.pack(">iiii", KIND_ROWS, FLAG_NO_METADATA, columns, rows)
    out = np.empty(len(head) + size, np.uint8)
    out[: len(head)] = np.frombuffer(head, np.uint8)
    at = len(head)
    for piece in pieces:
        at = copy_rows(piece.data, piece.starts, piece.ends, piece.counts, columns, out, at)
        if at < 0:
            raise FrameError("an answer's rows do not end where the answer ends")
    return out.tobytes()


def row_numbers(pieces: Sequence[Piece]) -> Ints:
    """Of each row of `page`, the number of its request."""
    return np.concatenate(
        [np.zeros(0, np.int64), *(np.repeat(piece.numbers, piece.counts) for piece in pieces)]
    )


def paging_state(data: bytes, frame: int) -> bytes:
    """Where the page ended that the frame at `frame`, of kind MORE, holds."""
    (length,) = struct.unpack_from(">i", data, frame + 5)
    body = data[frame + HEADER_BYTES : frame + HEADER_BYTES + length]
    reader = Reader(body)
    if data[frame + 1] & _FLAG_WARNING:
        for _ in range(reader.read_short()):
            reader.read_string()
    reader.take(12)
    return reader.read_bytes() or b""


class KeyLists(NamedTuple):
    """Keys one after another, and which of them each request asked for."""

    offsets: NDArray[np.int32]
    data: Bytes
    found: NDArray[np.bool_]  #: per key: a row of it came; written by `match_keys`


def match_keys(piece: Piece, columns: int, first: Ints, last: Ints, keys: KeyLists) -> Ints:
    """Of each row, the key that its first column holds.

    Answer i asked for the keys first[i]..last[i]-1. Raises `FrameError` for a row that nobody
    asked for.
    """
    from ringhaul.statements.kernels import find_keys

    rows = np.empty(int(piece.counts.sum()), np.int64)
    good = find_keys(
        piece.data, piece.starts, piece.ends, piece.counts, columns, first, last, *keys, rows
    )
    if not good:
        raise FrameError("a row came whose key is not one that was asked for")
    return rows


def warm_up() -> None:
    """Load the loops of this process, or compile them where nobody has done so before."""
    from ringhaul.statements import kernels

    assert kernels
