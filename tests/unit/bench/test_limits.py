"""The programs that measure the server's limits request all rows, and count the answers."""

import itertools
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.frames import Bound, batches_of, frames_of, list_value, select_frames
from bench.limit import VOID, voids
from bench.read_limit import PAGE_ROWS, page_request
from bench.replay import HEADER
from bench.ring import TOKEN_MAX, TOKEN_MIN, ring_slices
from bench.select_limit import Answers, marker_values
from ringhaul.cql.batches import entries_of

QUERY_ID = bytes(range(16))


def answer(rows: int, *, metadata: bool = False, opcode: int = 8) -> bytes:
    """A RESULT frame of rows of one int column."""
    flags = 1 if metadata else 4
    specs = b"\0\1k\0\1t\0\1c\0\x09" if metadata else b""
    body = struct.pack(">iii", 2, flags, 1) + specs + struct.pack(">i", rows)
    body += struct.pack(">ii", 4, 7) * rows
    return HEADER.pack(0x84, 0, 5, opcode, len(body)) + body


@given(st.integers(1, 300))
def test_slices_cover_the_ring_once(count: int) -> None:
    slices = ring_slices(count)

    assert len(slices) == count
    assert slices[0][0] == TOKEN_MIN and slices[-1][1] == TOKEN_MAX
    assert all(lo < hi for lo, hi in slices)
    assert all(one[1] == other[0] for one, other in itertools.pairwise(slices))


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=20), st.data())
def test_answers_are_counted_wherever_the_buffer_is_cut(
    results: list[tuple[int, bool]], data: st.DataObject
) -> None:
    sent = b"".join(answer(rows, metadata=metadata) for rows, metadata in results)
    cuts = data.draw(st.lists(st.integers(0, len(sent)), max_size=8).map(sorted))

    counter, rest, counted = Answers(), b"", 0
    for first, last in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        rest += sent[first:last]
        answers, used = counter.count(rest)
        rest, counted = rest[used:], counted + answers

    assert rest == b"" and counted == len(results)
    assert counter.rows == sum(rows for rows, _ in results)
    assert counter.bytes_count == len(sent)


def test_an_answer_that_is_an_error_ends_the_replay() -> None:
    with pytest.raises(RuntimeError, match="no result"):
        Answers().count(answer(1) + answer(1, opcode=0))
    with pytest.raises(RuntimeError, match="no VOID"):
        voids(answer(1)[:VOID] * 2)


def test_void_results_are_counted_when_they_are_whole() -> None:
    void = HEADER.pack(0x84, 0, 3, 8, 4) + b"\0\0\0\1"

    assert voids(void * 3 + void[:5]) == (3, 3 * VOID)
    assert voids(void[:12]) == (0, 0)


def test_a_page_is_requested_by_range_and_paging_state() -> None:
    first = page_request(QUERY_ID, (-5, 9), None)
    next_one = page_request(QUERY_ID, (-5, 9), b"state")

    for frame in (first, next_one):
        assert HEADER.unpack_from(frame) == (4, 0, 0, 0x0A, len(frame) - HEADER.size)
        assert frame[9:27] == b"\0\x10" + QUERY_ID
        assert frame[30:56] == struct.pack(">Hiqiq", 2, 8, -5, 8, 9)
    assert first.endswith(struct.pack(">i", PAGE_ROWS))
    assert next_one.endswith(struct.pack(">ii", PAGE_ROWS, 5) + b"state")
    assert (first[29], next_one[29]) == (0x01 | 0x02 | 0x04, 0x01 | 0x02 | 0x04 | 0x08)


def test_keys_are_requested_one_by_one_or_in_lists() -> None:
    keys = [b"a", b"bc", b""]

    assert marker_values(keys, 1) == keys
    assert marker_values(keys, 2) == [list_value([b"a", b"bc"]), list_value([b""])]
    assert list_value([b"a", b"bc"]) == bytes.fromhex("000000020000000161000000026263")


def test_frames_of_keys_hold_statement_and_value() -> None:
    frames = select_frames(QUERY_ID, [b"k1", b"key2"], streams=2)

    assert isinstance(frames, pa.BinaryArray)
    for stream, (frame, key) in enumerate(zip(frames.to_pylist(), [b"k1", b"key2"], strict=True)):
        assert HEADER.unpack_from(frame) == (4, 0, stream, 0x0A, len(frame) - HEADER.size)
        assert frame[9:27] == b"\0\x10" + QUERY_ID
        # LOCAL_QUORUM; values, and no metadata in the answer; one value.
        assert frame[27:32] == bytes.fromhex("0006030001")
        assert frame[32:] == struct.pack(">i", len(key)) + key


def test_rows_are_replayed_one_by_one_or_in_batches() -> None:
    # Given five rows of two values, in two blocks
    rows = [struct.pack(">i1si1s", 1, b"k", 1, bytes([i])) for i in range(5)]
    bound = Bound(QUERY_ID, 2, [pa.array(rows[:3], pa.binary()), pa.array(rows[3:], pa.binary())])

    singles, batches = frames_of(bound, streams=2).to_pylist(), batches_of(bound, 2).to_pylist()

    assert bound.count == 5
    assert [frame[-10:] for frame in singles] == rows
    assert [HEADER.unpack_from(frame)[2:4] for frame in singles] == [
        (0, 0x0A),
        (1, 0x0A),
        (0, 0x0A),
        (0, 0x0A),
        (1, 0x0A),
    ]
    assert [entries_of(frame).to_pylist() for frame in batches] == [rows[:2], rows[2:3], rows[3:]]
