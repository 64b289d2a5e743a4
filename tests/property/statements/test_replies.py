"""The compiled search for frames finds the same as a plain one, wherever the buffer is cut."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.cql.frames import FrameError
from ringhaul.statements import kernels
from ringhaul.statements.replies import (
    MORE,
    OTHER,
    ROWS,
    VOID,
    Found,
    KeyLists,
    Piece,
    match_keys,
    page,
    paging_state,
    row_numbers,
    scan,
)
from tests import protocol

COLUMNS = 3

# Compiled before the tests, so that no test's time includes it.
assert kernels
Row = Sequence[bytes | None]

cells = st.none() | st.binary(max_size=20)
rows_of_three = st.lists(st.tuples(cells, cells, cells), max_size=5)


class Sent(NamedTuple):
    """A frame and its expected content."""

    data: bytes
    kind: int
    stream: int
    rows: Sequence[Row] = ()
    state: bytes | None = None


def row_bytes(rows: Sequence[Row]) -> bytes:
    return b"".join(protocol.long_bytes(cell) for row in rows for cell in row)


def rows_body(rows: Sequence[Row], columns: int = COLUMNS, state: bytes | None = None) -> bytes:
    flags = 4 if state is None else 4 | 2
    body = struct.pack(">iii", 2, flags, columns)
    if state is not None:
        body += protocol.long_bytes(state)
    return body + struct.pack(">i", len(rows)) + row_bytes(rows)


def answer(
    stream: int, rows: Sequence[Row], state: bytes | None, warnings: list[str] | None
) -> Sent:
    body, flags = rows_body(rows, state=state), 0
    if warnings is not None:
        flags = protocol.WARNING
        extras = struct.pack(">H", len(warnings)) + b"".join(map(protocol.string, warnings))
        body = extras + body
    data = protocol.reply(protocol.RESULT, body, stream, flags=flags)
    return Sent(data, ROWS if state is None else MORE, stream, rows, state)


streams = st.integers(0, 32767)
warnings = st.none() | st.lists(st.text(max_size=8), max_size=2)
frames = st.one_of(
    st.builds(answer, streams, rows_of_three, st.none() | st.binary(max_size=9), warnings),
    st.builds(lambda s, w: Sent(protocol.void(s, warnings=w), VOID, s), streams, warnings),
    st.builds(lambda s: Sent(protocol.void(s, tracing=b"t" * 16), OTHER, s), streams),
    st.builds(lambda s, m: Sent(protocol.error(s, 0x1001, m), OTHER, s), streams, st.text()),
    # An answer with another number of columns than expected
    st.builds(
        lambda s: Sent(protocol.reply(8, rows_body([(b"",)], 1), s), OTHER, s),
        streams,
    ),
    st.builds(lambda: Sent(protocol.reply(12, b"event", -1), OTHER, -1)),
)


def piece_of(data: bytes, found: Found) -> Piece:
    has_rows = found.kinds >= ROWS
    return Piece(
        np.frombuffer(data, np.uint8),
        found.streams[has_rows],
        found.starts[has_rows],
        found.ends[has_rows],
        found.counts[has_rows],
        found.kinds[has_rows] == ROWS,
    )


def check(sent: Sequence[Sent], data: bytes, found: Found) -> None:
    assert found.streams.tolist() == [frame.stream for frame in sent]
    assert found.kinds.tolist() == [frame.kind for frame in sent]
    assert found.counts.tolist() == [len(frame.rows) for frame in sent]
    for frame, begin, end in zip(sent, found.frames, found.ends, strict=True):
        assert data[begin:end] == frame.data
        if frame.kind == MORE:
            assert paging_state(data, int(begin)) == frame.state


@given(st.lists(frames, max_size=8))
def test_frames_are_found_wherever_the_buffer_is_cut(sent: list[Sent]) -> None:
    whole = b"".join(frame.data for frame in sent)
    for cut in range(len(whole) + 1):
        first = scan(whole[:cut], COLUMNS)
        rest = whole[:cut][first.consumed_bytes :] + whole[cut:]
        second = scan(rest, COLUMNS)
        assert second.consumed_bytes == len(rest)
        count = len(first.streams)
        check(sent[:count], whole, first)
        check(sent[count:], rest, second)


@given(st.lists(frames, max_size=8))
def test_rows_of_many_answers_become_one_page(sent: list[Sent]) -> None:
    whole = b"".join(frame.data for frame in sent)
    piece = piece_of(whole, scan(whole, COLUMNS))
    rows = [row for frame in sent for row in frame.rows]
    assert page([piece, piece], COLUMNS) == rows_body([*rows, *rows])
    numbers = [frame.stream for frame in sent for _ in frame.rows]
    assert row_numbers([piece, piece]).tolist() == numbers * 2


@given(st.lists(frames, min_size=1, max_size=4), st.data())
def test_wrong_bytes_lead_to_no_read_outside_the_buffer(
    sent: list[Sent], data: st.DataObject
) -> None:
    whole = bytearray(b"".join(frame.data for frame in sent))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.sampled_from([0, 1, 2, 4, 0x7F, 0x80, 0xFF]))
    try:
        found = scan(bytes(whole), COLUMNS)
    except FrameError:
        return
    begin = 0
    for frame, start, end, count in zip(
        found.frames, found.starts, found.ends, found.counts, strict=True
    ):
        assert begin == frame <= frame + 9 <= start <= end <= len(whole)
        assert count >= 0
        begin = end
    try:
        body = page([piece_of(bytes(whole), found)], COLUMNS)
    except FrameError:
        return
    # The rest is a valid page: its cells end where it ends.
    at, (count,) = 16, struct.unpack_from(">i", body, 12)
    for _ in range(count * COLUMNS):
        (length,) = struct.unpack_from(">i", body, at)
        assert length >= -1
        at += 4 + max(length, 0)
    assert at == len(body)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "version byte 0x48"),
        (struct.pack(">BBhBi", 0x84, 0, 5, 8, -1), "length -1"),
        (struct.pack(">BBhBi", 0x84, 0, 5, 8, 256 * 2**20 + 1), "length 268435457"),
    ],
)
def test_an_invalid_frame_is_detected(data: bytes, words: str) -> None:
    for before in (b"", protocol.void(1) * 20):
        with pytest.raises(FrameError, match=words):
            scan(before + data, COLUMNS)


keys = st.lists(st.binary(min_size=1, max_size=6), min_size=1, max_size=12, unique=True)


@given(keys, st.data())
def test_rows_find_their_keys(distinct: list[bytes], data: st.DataObject) -> None:
    # Given lists of keys, and answers with rows of some of them in any order
    offsets = np.cumsum([0, *map(len, distinct)]).astype(np.int32)
    buffer = np.frombuffer(b"".join(distinct), np.uint8)
    cut = data.draw(st.integers(0, len(distinct)))
    bounds = [(0, cut), (cut, len(distinct))]
    sent, expected, whole = [], [], b""
    for first, last in bounds:
        wanted = data.draw(st.lists(st.integers(first, last - 1))) if last > first else []
        expected += wanted
        rows = [(distinct[key], None, b"v") for key in wanted]
        sent.append(answer(0, rows, None, None))
        whole += sent[-1].data
    # When they are matched
    lists = KeyLists(offsets, buffer, np.zeros(len(distinct), np.bool_))
    piece = piece_of(whole, scan(whole, COLUMNS))
    first = np.array([first for first, _ in bounds])
    last = np.array([last for _, last in bounds])
    # Then each row has its key, and no other key was found
    assert match_keys(piece, COLUMNS, first, last, lists).tolist() == expected
    assert set(np.flatnonzero(lists.found).tolist()) == set(expected)


def test_a_row_of_a_key_that_was_not_requested_is_an_error() -> None:
    lists = KeyLists(
        np.array([0, 1, 2], np.int32), np.frombuffer(b"ab", np.uint8), np.zeros(2, np.bool_)
    )
    for key in (b"b", b"", None, b"aa"):
        data = answer(0, [(key, None, None)], None, None).data
        piece = piece_of(data, scan(data, COLUMNS))
        with pytest.raises(FrameError, match="not requested"):
            match_keys(piece, COLUMNS, np.array([0]), np.array([1]), lists)


def test_answers_that_claim_more_rows_than_they_have_bytes_are_refused() -> None:
    claim = 2**31 - 1
    piece = Piece(
        np.zeros(8, np.uint8),
        *(np.array(column, np.int64) for column in ([0, 1], [0, 4], [4, 8], [claim, claim])),  # type: ignore[call-arg]
        np.ones(2, np.bool_),
    )
    with pytest.raises(FrameError, match="cannot hold"):
        page([piece], 1)
