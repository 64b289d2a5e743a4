"""Invalid frames, and edge cases of valid ones."""

from __future__ import annotations

import struct
import time

import numpy as np
import pyarrow as pa
import pytest

from ringhaul.cql import frames
from ringhaul.cql.frames import FrameError, Reader, execute_frames, parse_replies, read_error
from tests import protocol
from tests.cases import each

ROWS = pa.array([struct.pack(">i", n) + b"x" * n for n in (1, 700, 0, 30)], pa.binary())


def built() -> frames.Frames:
    return execute_frames(ROWS, b"q" * 16, 6, 1)


@each(
    ("data", "what"),
    [
        (protocol.reply(protocol.READY, b"", 0, version=0x83), "version byte 0x83"),
        (protocol.reply(protocol.READY, b"", 0, version=0x04), "version byte 0x04"),
        (b"HTTP/1.1 400 Bad Request\r\n", "version byte 0x48"),
        (struct.pack(">BBhBi", 0x84, 0, 5, 8, -1), "length -1"),
        (struct.pack(">BBhBi", 0x84, 0, 5, 8, -(2**31)), "length -2147483648"),
        (struct.pack(">BBhBi", 0x84, 0, 5, 8, 2**31 - 1), "length 2147483647"),
        (struct.pack(">BBhBi", 0x84, 0, 5, 8, 256 * 2**20 + 1), "length 268435457"),
        (protocol.reply(protocol.RESULT, b"\0\0\0\1", 5, flags=0x01), "compressed"),
        # Bodies that end before what their header's flags put in front of them
        (protocol.reply(protocol.RESULT, b"\0" * 15, 5, flags=0x02), "16 bytes at 0 of a body"),
        (protocol.reply(protocol.RESULT, b"\0\1\0\x09warn", 5, flags=0x08), "9 bytes at 4"),
        (protocol.reply(protocol.RESULT, b"\xff\xff", 5, flags=0x08), "2 bytes at 2"),
        (protocol.reply(protocol.RESULT, b"\0\1\0\1k\x7f\xff\xff\xff", 5, flags=4), "2147483647"),
        (protocol.reply(protocol.RESULT, b"", 5, flags=0x04), "2 bytes at 0 of a body of 0"),
    ],
)
def test_an_invalid_answer_is_detected(data: bytes, what: str) -> None:
    with pytest.raises(FrameError, match=what):
        parse_replies(data)
    # Also after a valid answer
    with pytest.raises(FrameError, match=what):
        parse_replies(protocol.void(1) * 50 + data)


def test_a_frame_with_a_possible_length_is_waited_for() -> None:
    head = struct.pack(">BBhBi", 0x84, 0, 5, 8, 256 * 2**20)
    assert parse_replies(head).consumed_bytes == 0
    assert parse_replies(protocol.void(7) + head + b"\0" * 100).consumed_bytes == 13


@each("cut", range(len(b"\0\0\x22\0\0\5wrong")))
def test_a_truncated_error_body_is_refused(cut: int) -> None:
    with pytest.raises(FrameError, match="of a body of"):
        read_error(b"\0\0\x22\0\0\5wrong"[:cut])


def test_a_prepared_id_must_come_in_a_prepared_result() -> None:
    body = protocol.prepared(1, b"an id")[9:]
    assert frames.read_prepared_id(body) == b"an id"
    with pytest.raises(FrameError, match="kind 1"):
        frames.read_prepared_id(b"\0\0\0\1")
    with pytest.raises(FrameError, match="5 bytes at 6 of a body of 8"):
        frames.read_prepared_id(body[:8])


def test_a_reader_takes_no_negative_count() -> None:
    with pytest.raises(FrameError, match="-1 bytes at 0"):
        Reader(b"abc").take(-1)


def test_errors_are_named() -> None:
    assert frames.ServerError(0x1001, "").name == "overloaded"
    assert frames.ServerError(0x1600, "").name == "cdc_write_failure"
    assert frames.ServerError(0x9999, "").name == "0x9999"


def test_stream_ids_are_set_in_place() -> None:
    made = built()
    before = made.buffer.tobytes()
    # When two frames in the middle get ids
    sent = made.set_streams(1, 3, np.array([0x1234, 0x7FFE]))
    # Then exactly those two frames are sent, with only their ids changed
    first, second = made.offsets[1:3].tolist()
    expected = bytearray(before)
    expected[first + 2 : first + 4] = b"\x12\x34"
    expected[second + 2 : second + 4] = b"\x7f\xfe"
    assert made.buffer.tobytes() == bytes(expected)
    assert bytes(sent) == bytes(expected[first : made.offsets[3]])
    assert made.bytes_between(1, 3) == len(sent)


def test_taken_frames_are_copies() -> None:
    made = built()
    taken = made.take(np.array([3, 1]))
    whole = made.buffer.tobytes()
    parts = [whole[made.offsets[i] : made.offsets[i + 1]] for i in (3, 1)]
    assert taken.buffer.tobytes() == b"".join(parts)
    assert taken.offsets.tolist() == [0, len(parts[0]), len(parts[0]) + len(parts[1])]
    assert taken.offsets.dtype == np.int32
    taken.set_streams(0, 2, np.array([9, 9]))
    assert made.buffer.tobytes() == whole


def test_as_many_frames_as_fit_but_at_least_one() -> None:
    made = built()
    sizes = np.diff(made.offsets).tolist()
    assert made.fit(0, 4, sum(sizes)) == 4
    assert made.fit(0, 4, sum(sizes) - 1) == 3
    assert made.fit(0, 4, sizes[0]) == 1
    assert made.fit(1, 4, sizes[0]) == 1
    assert made.fit(1, 4, 0) == 1
    assert made.fit(2, 4, sizes[2] + sizes[3]) == 2


def test_errors_between_answers_take_linear_time() -> None:
    # Given answers with an error at every other place: the worst case for runs of VOID
    pair = protocol.void(1) + protocol.error(2, 0x1001, "busy")
    few, many = pair * 500, pair * 8000
    parse_replies(few)

    def took_s(data: bytes) -> float:
        started = time.process_time()
        assert parse_replies(data).consumed_bytes == len(data)
        return time.process_time() - started

    # When 16 times as many are parsed, it takes some 16 times as long and not 256 times
    # The shortest of several times: the collector may look through all of pytest's objects
    assert min(took_s(many) for _ in range(3)) < 80 * min(took_s(few) for _ in range(5))
