"""Compressed frames of the CQL native protocol v4. Pure: bytes in, bytes out.

Once STARTUP has named LZ4, each frame may have a compressed body: a flag in its header says so. The
body is then the length of the plain one (big-endian i32) and an LZ4 block. Headers, and so stream
ids, stay plain. Frames are packed just before they are sent and unpacked as they come, so that all
other modules see plain ones.

Source: native_protocol_v4.spec of Apache Cassandra, sections 2.2 and 5.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ringhaul.cql.frames import (
    BODY_BYTES_MAX,
    FLAG_COMPRESSION,
    HEADER,
    HEADER_BYTES,
    HEADER_FIELDS,
    RESPONSE_VERSION,
    FrameError,
    Opcode,
)

NAME = "lz4"
#: A smaller body, such as a probe's, is sent as it is.
BODY_BYTES_MIN = 64
#: No LZ4 block unpacks to more than this many times its length (a byte of a length adds 255), plus
#: some bytes: so a few bytes cannot claim to be gigabytes.
_RATIO_MAX = 255
_LENGTH = struct.Struct(">i")
_CODEC = pa.Codec("lz4_raw")
#: The server also packs VOID results: always into these bytes, a block of four literals.
_PACKED_VOID_BODY = bytes.fromhex("00000004 40 00000001")
_VOID_BODY = _PACKED_VOID_BODY[-4:]
_PACKED_VOID = np.dtype([*HEADER_FIELDS, ("length", ">i4"), ("body", "V9")])
_VOID = np.dtype([*HEADER_FIELDS, ("length", ">i4"), ("body", "V4")])


def compress_body(body: bytes | memoryview) -> bytes:
    """Return a body as compressed frames have it."""
    packed: bytes = _CODEC.compress(body, asbytes=True)
    return _LENGTH.pack(len(body)) + packed


def decompress_body(body: bytes | memoryview) -> bytes:
    """Return the plain body. Raises `FrameError` for a damaged or too large body."""
    if len(body) < _LENGTH.size:
        raise FrameError("a compressed body without its length")
    (length,) = _LENGTH.unpack_from(body)
    block = memoryview(body)[_LENGTH.size :]
    if not 0 <= length <= min(BODY_BYTES_MAX, (len(block) + 1) * _RATIO_MAX):
        raise FrameError(f"a compressed body of {len(block):,} bytes claims to be {length:,}")
    plain = _unpack(block, length)
    # What pyarrow returns always has the length that it is given: if the block is shorter, the rest
    # is whatever was in memory. A block that also fits one byte less is shorter.
    if plain is None or (length and _unpack(block, length - 1) is not None):
        raise FrameError(f"a compressed body is damaged, or does not have {length:,} bytes")
    return plain


def _unpack(block: memoryview, length: int) -> bytes | None:
    """Return the plain bytes of a block; None if it is damaged, or longer."""
    try:
        plain: bytes = _CODEC.decompress(block, decompressed_size=length, asbytes=True)
    except OSError:
        return None
    return plain


def compress_frames(data: memoryview) -> bytes:
    """Return requests with their bodies compressed, except where that does not make them smaller.

    `data`: complete frames, as `frames` builds them.
    """
    parts: list[bytes | memoryview] = []
    at, end = 0, len(data)
    while at < end:
        version, flags, stream, opcode, length = HEADER.unpack_from(data, at)
        body_at = at + HEADER_BYTES
        at = body_at + length
        if length >= BODY_BYTES_MIN and opcode != Opcode.STARTUP:
            packed = compress_body(data[body_at:at])
            if len(packed) < length:
                flags |= FLAG_COMPRESSION
                parts += (HEADER.pack(version, flags, stream, opcode, len(packed)), packed)
                continue
        parts.append(data[body_at - HEADER_BYTES : at])
    return b"".join(parts)


class Expanded(NamedTuple):
    """Responses with plain bodies."""

    data: bytes
    #: Bytes that were unpacked; the rest is the beginning of the next frame.
    consumed_bytes: int


def expand_frames(data: bytes) -> Expanded:
    """Return all complete responses in `data` with plain bodies. Raises `FrameError`."""
    parts: list[bytes] = []
    at, size = 0, len(data)
    while size - at >= HEADER_BYTES:
        voids = _packed_voids(data, at)
        if voids:
            parts.append(voids.data)
            at += voids.consumed_bytes
            continue
        version, flags, stream, opcode, length = HEADER.unpack_from(data, at)
        if version != RESPONSE_VERSION or not 0 <= length <= BODY_BYTES_MAX:
            # Unchanged: the parser of frames says what is wrong.
            return Expanded(b"".join([*parts, data[at:]]), size)
        end = at + HEADER_BYTES + length
        if end > size:
            break
        if flags & FLAG_COMPRESSION:
            body = decompress_body(memoryview(data)[at + HEADER_BYTES : end])
            flags &= ~FLAG_COMPRESSION
            parts += (HEADER.pack(version, flags, stream, opcode, len(body)), body)
        else:
            parts.append(data[at:end])
        at = end
    return Expanded(b"".join(parts), at)


def _packed_voids(data: bytes, at: int) -> Expanded | None:
    """Return the run of packed VOID results that begins at `at`; None if none does."""
    first = data[at + HEADER_BYTES : at + HEADER_BYTES + len(_PACKED_VOID_BODY)]
    if first != _PACKED_VOID_BODY:
        return None
    answers = np.frombuffer(data, _PACKED_VOID, (len(data) - at) // _PACKED_VOID.itemsize, at)
    plain = (
        (answers["version"] == RESPONSE_VERSION)
        & (answers["flags"] == FLAG_COMPRESSION)
        & (answers["opcode"] == int(Opcode.RESULT))
        & (answers["length"] == len(_PACKED_VOID_BODY))
        & (answers["body"] == np.void(_PACKED_VOID_BODY))
    )
    count = len(plain) if plain.all() else int(np.argmin(plain))
    if not count:
        return None
    voids = np.empty(count, _VOID)
    for name, _ in HEADER_FIELDS:
        voids[name] = answers[name][:count]
    voids["flags"] = 0
    voids["length"] = len(_VOID_BODY)
    voids["body"] = np.void(_VOID_BODY)
    return Expanded(voids.tobytes(), count * _PACKED_VOID.itemsize)
