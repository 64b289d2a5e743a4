"""Find responses to reads in received bytes and parse many at a time. Pure.

`scan` finds the frames in a buffer in one compiled pass and classifies each; for a response with
rows it finds where they are and how many. No row becomes a Python object: `page` joins the rows of
many responses, as if the server had sent them in one page.

Responses come without metadata (flag skip_metadata of EXECUTE), so that a response is

    header of 9 bytes; int kind = 2; int flags; int columns; [bytes paging state]; int rows; rows

with a row's columns as int length and that many bytes each. Source: "CQL BINARY PROTOCOL v4",
sections 2 and 4.2.5.2. Every length is checked against the frame's end: a frame that does not fit
is left to `parse_replies`, or is a `FrameError`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.frames import (
    FLAG_WARNING,
    HEADER_BYTES,
    PROTOCOL_VERSION,
    FrameError,
    Reader,
)
from ringhaul.cql.result_codes import KIND_ROWS, NO_METADATA

#: Kinds of frames; as in `kernels.py`, which is imported on demand because it loads numba.
OTHER = 0  #: left to `parse_replies`: an error, an event, a response with metadata
VOID = 1
ROWS = 2  #: the rows of a response, all or the last of them
MORE = 3  #: a page of rows that is not the last


Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


class Found(NamedTuple):
    """The complete frames of a buffer, in order; each array has one item per frame."""

    streams: Ints
    kinds: Ints
    frames: Ints  #: where the frame begins
    starts: Ints  #: where its first row begins
    ends: Ints  #: where the frame, and its last row, ends
    counts: Ints  #: rows
    consumed_bytes: int  #: the rest of the buffer is the beginning of the next frame

    @classmethod
    def of(cls, table: NDArray[np.int64], consumed_bytes: int) -> Found:
        """Build it from a table with a row for each of the fields above."""
        streams, kinds, frames, starts, ends, counts = table
        return cls(streams, kinds, frames, starts, ends, counts, consumed_bytes)

    def pick(self, which: NDArray[Any]) -> Found:
        """Return some of the frames."""
        return Found.of(np.array([column[which] for column in self[:6]]), self.consumed_bytes)


def scan(data: bytes, columns: int) -> Found:
    """Return the frames in `data`; responses with rows have `columns` columns.

    Raises `FrameError` for malformed data.
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
    """Responses of one buffer: for each, its request and the place of its rows."""

    data: Bytes
    numbers: Ints  #: request numbers
    starts: Ints
    ends: Ints
    counts: Ints  #: rows
    last: NDArray[np.bool_]  #: whether it is the last page for the request

    def pick(self, which: NDArray[Any]) -> Piece:
        """Return some of the responses."""
        return Piece(self.data, *(column[which] for column in self[1:]))


def page(pieces: Sequence[Piece], columns: int) -> bytes:
    """Return the body of a RESULT with the rows of all pieces, one after another.

    Raises `FrameError` if a response's rows do not end where it ends.
    """
    from ringhaul.statements.kernels import copy_rows

    size = sum(int(piece.ends.sum() - piece.starts.sum()) for piece in pieces)
    rows = sum(int(piece.counts.sum()) for piece in pieces)
    if rows > size:  # each row has a cell, and a cell has a length of four bytes
        raise FrameError(f"responses of {size} bytes cannot hold {rows} rows")
    head = struct.pack(">iiii", KIND_ROWS, NO_METADATA, columns, rows)
    out = np.empty(len(head) + size, np.uint8)
    out[: len(head)] = np.frombuffer(head, np.uint8)
    at = len(head)
    for piece in pieces:
        at = copy_rows(piece.data, piece.starts, piece.ends, piece.counts, columns, out, at)
        if at < 0:
            raise FrameError("a response's rows do not end where the response ends")
    return out.tobytes()


def row_numbers(pieces: Sequence[Piece]) -> Ints:
    """Return the request number of each row of `page`."""
    return np.concatenate(
        [np.zeros(0, np.int64), *(np.repeat(piece.numbers, piece.counts) for piece in pieces)]
    )


def paging_state(data: bytes, frame: int) -> bytes:
    """Return the paging state in the frame at `frame`, which is of kind MORE."""
    (length,) = struct.unpack_from(">i", data, frame + 5)
    body = data[frame + HEADER_BYTES : frame + HEADER_BYTES + length]
    reader = Reader(body)
    if data[frame + 1] & FLAG_WARNING:
        for _ in range(reader.read_short()):
            reader.read_string()
    reader.take(12)
    return reader.read_bytes() or b""


class KeyLists(NamedTuple):
    """Keys one after another, and which of them were found."""

    offsets: NDArray[np.int32]
    data: Bytes
    found: NDArray[np.bool_]  #: per key: a row of it came; set by `match_keys`


def match_keys(piece: Piece, columns: int, first: Ints, last: Ints, keys: KeyLists) -> Ints:
    """Return for each row the key that its first column holds.

    Response i is for the keys first[i]..last[i]-1. Raises `FrameError` for a row with any other
    key.
    """
    from ringhaul.statements.kernels import find_keys

    rows = np.empty(int(piece.counts.sum()), np.int64)
    good = find_keys(
        piece.data, piece.starts, piece.ends, piece.counts, columns, first, last, *keys, rows
    )
    if not good:
        raise FrameError("a row has a key that was not requested")
    return rows
