"""Compressed frames hold the plain ones, as the driver and its codec read and write them."""

from __future__ import annotations

import io
import struct
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cassandra.protocol import ExecuteMessage, OptionsMessage, ProtocolHandler
from cassandra.segment import SegmentCodec
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.cql.compressed_frames import (
    BODY_BYTES_MIN,
    compress_body,
    compress_frames,
    decompress_body,
    expand_frames,
)
from ringhaul.cql.frames import (
    HEADER,
    HEADER_BYTES,
    FrameError,
    Opcode,
    execute_frames,
    frame,
    parse_replies,
    startup_body,
)
from tests import protocol

BODIES = st.one_of(
    st.binary(max_size=300),
    st.builds(lambda part, n: part * n, st.binary(max_size=9), st.integers(0, 90)),
)
#: As Cassandra sends it.
PACKED_VOID = bytes.fromhex("00000004 40 00000001")


def packed(plain: bytes) -> bytes:
    """A response with its body compressed, as a server does it: whatever its size."""
    version, flags, stream, opcode, length = HEADER.unpack_from(plain)
    body = compress_body(plain[HEADER_BYTES:])
    assert len(plain) == HEADER_BYTES + length
    return HEADER.pack(version, flags | 1, stream, opcode, len(body)) + body


def split(data: bytes, *, smaller: bool = True) -> list[tuple[int, int, int, bytes]]:
    """(flags, stream, opcode, plain body) of requests, read by the driver's rules."""
    found, at = [], 0
    while at < len(data):
        _, flags, stream, opcode, length = HEADER.unpack_from(data, at)
        body = data[at + HEADER_BYTES : at + HEADER_BYTES + length]
        if flags & 1:
            assert len(body) < struct.unpack_from(">i", body)[0] or not smaller
            body = pa.Codec("lz4_raw").decompress(
                body[4:], struct.unpack_from(">i", body)[0], asbytes=True
            )
        found.append((flags & ~1, stream, opcode, body))
        at += HEADER_BYTES + length
    return found


@given(st.lists(st.tuples(BODIES, st.integers(0, 32767)), max_size=8))
def test_requests_are_the_plain_ones_once_unpacked(requests: list[tuple[bytes, int]]) -> None:
    plain = b"".join(frame(Opcode.EXECUTE, body, stream) for body, stream in requests)
    sent = compress_frames(memoryview(plain))
    assert split(sent) == [(0, stream, Opcode.EXECUTE, body) for body, stream in requests]
    assert len(sent) <= len(plain)


@given(st.lists(st.binary(max_size=400), min_size=1, max_size=8), st.data())
def test_what_a_driver_would_send(values: list[bytes], data: st.DataObject) -> None:
    """Also after stream ids were set, in the buffer that is compressed then."""
    rows = pa.array([struct.pack(">i", len(v)) + v for v in values], pa.binary())
    made = execute_frames(rows, b"q" * 16, 6, 1)
    streams = data.draw(st.lists(st.integers(0, 32767), min_size=len(values), max_size=len(values)))
    sent = compress_frames(made.set_streams(0, len(made), np.array(streams)))
    for (_, stream, _, body), value, expected in zip(split(sent), values, streams, strict=True):
        theirs: Any = ExecuteMessage(b"q" * 16, [value], 6)
        whole = bytes(ProtocolHandler.encode_message(theirs, expected, 4, None, False))
        assert (stream, body) == (expected, whole[HEADER_BYTES:])


@given(BODIES)
def test_the_driver_reads_and_writes_bodies_with_it(body: bytes) -> None:
    """In frames of version 4, and in the segments of version 5."""
    message: Any = ExecuteMessage(b"q" * 16, [body], 6)
    plain = bytes(ProtocolHandler.encode_message(message, 5, 4, None, False))
    theirs = bytes(ProtocolHandler.encode_message(message, 5, 4, compress_body, False))
    assert split(theirs, smaller=False) == split(plain)
    codec, buffer = SegmentCodec(compress_body, decompress_body), io.BytesIO()
    codec.encode(buffer, body)
    buffer.seek(0)
    assert codec.decode(buffer, codec.decode_header(buffer)).payload == body


REPLIES = st.one_of(
    st.builds(protocol.void, st.integers(0, 32767)),
    st.builds(
        lambda body, stream: protocol.reply(protocol.RESULT, body, stream),
        BODIES,
        st.integers(0, 32767),
    ),
    st.builds(lambda stream: protocol.error(stream, 0x1001, "busy"), st.integers(0, 32767)),
)


@given(st.lists(st.tuples(REPLIES, st.booleans()), max_size=12), st.data())
def test_replies_are_the_plain_ones_wherever_they_are_cut(
    replies: list[tuple[bytes, bool]], data: st.DataObject
) -> None:
    plain = b"".join(reply for reply, _ in replies)
    sent = b"".join(packed(reply) if pack else reply for reply, pack in replies)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=4)))
    found, rest = b"", b""
    for begin, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        received = rest + sent[begin:end]
        expanded, consumed_bytes = expand_frames(received)
        rest = received[consumed_bytes:]
        found += expanded
    assert (found, rest) == (plain, b"")


@given(st.binary(max_size=200))
def test_any_bytes_end_in_a_result_or_a_frame_error(data: bytes) -> None:
    for received in (data, HEADER.pack(0x84, 1, 0, 8, len(data)) + data):
        try:
            expanded, consumed_bytes = expand_frames(received)
        except FrameError:
            continue
        assert 0 <= consumed_bytes <= len(received)
        assert len(expanded) <= 256 * len(received)


def test_runs_of_void_are_found_as_the_server_packs_them() -> None:
    sent = b"".join(HEADER.pack(0x84, 1, n, 8, 9) + PACKED_VOID for n in range(3000))
    assert packed(protocol.void(7)) == HEADER.pack(0x84, 1, 7, 8, 9) + PACKED_VOID
    # In the middle of a run, one with a warning, which the run must not swallow
    warned = packed(protocol.void(5, warnings=["slow"]))
    plain, consumed_bytes = expand_frames(sent + warned + sent + sent[:5])
    assert consumed_bytes == 2 * len(sent) + len(warned)
    parsed = parse_replies(plain)
    assert parsed.voids.tolist() == [*range(3000), *range(3000)]
    assert [reply.warnings for reply in parsed.others] == [["slow"]]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\0\0\0", "a compressed body without its length"),
        (b"\x10\0\0\0" + bytes(9), "9 bytes claims to be 268,435,456"),
        (b"\x0f\xff\xff\xff" + bytes(9), "9 bytes claims to be 268,435,455"),
        (b"\xff\xff\xff\xff" + bytes(9), "9 bytes claims to be -1"),
        (b"\0\0\0\5" + compress_body(b"four")[4:], "is damaged, or does not have"),
        (b"\0\0\0\4" + b"\x40fo", "is damaged, or does not have"),
    ],
)
def test_a_damaged_body(body: bytes, reason: str) -> None:
    with pytest.raises(FrameError, match=reason):
        decompress_body(body)
    with pytest.raises(FrameError, match=reason):
        expand_frames(HEADER.pack(0x84, 1, 5, 8, len(body)) + body)


def test_frames_that_stay_as_they_are() -> None:
    startup = frame(Opcode.STARTUP, startup_body("lz4" * 100))
    probe = bytes(ProtocolHandler.encode_message(OptionsMessage(), 3, 4, None, False))
    small = frame(Opcode.EXECUTE, b"a" * (BODY_BYTES_MIN - 1))
    noise = frame(Opcode.EXECUTE, Random(1).randbytes(500))
    for plain in (startup, probe, small, noise):
        assert compress_frames(memoryview(plain)) == plain
    large = frame(Opcode.EXECUTE, b"a" * BODY_BYTES_MIN)
    assert len(compress_frames(memoryview(large))) < len(large)


def test_garbage_is_left_to_the_parser() -> None:
    garbage = b"HTTP/1.1 400 Bad Request\r\n"
    assert expand_frames(protocol.void(1) + garbage) == (protocol.void(1) + garbage, 39)
    with pytest.raises(FrameError, match="version byte 0x48"):
        parse_replies(expand_frames(garbage).data)
