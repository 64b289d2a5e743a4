"""Read snappy in its framing format, in the order of its chunks; each is checked.

A stream begins with an identifier, which may occur again where streams were appended. A chunk is a
byte for its kind, three for its length, and for data the masked CRC-32C of the uncompressed bytes.
"""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

_IDENTIFIER = b"\xff\x06\x00\x00sNaPpY"
_COMPRESSED, _PLAIN, _STREAM = 0x00, 0x01, 0xFF
#: Chunks of these kinds may be skipped; of 0x02 to 0x7f they may not.
_SKIPPABLE_FROM = 0x80
#: Most uncompressed bytes of a chunk.
_CHUNK_BYTES_MAX = 65_536


class SnappyFrames:
    """The uncompressed bytes of a framed stream. Raises `OSError` or `EOFError` for a broken one.

    Holds one chunk: 64 KiB, and as much compressed.
    """

    def __init__(self, file: io.BufferedReader) -> None:
        self._file, self._ready, self._begun = file, b"", False

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none only at the end."""
        while not self._ready:
            head = self._file.read(4)
            if not head and self._begun:
                return b""
            if len(head) < 4:
                raise EOFError("it ends within a chunk")
            self._take(head[0], int.from_bytes(head[1:], "little"), head)
        found, self._ready = self._ready[:size], self._ready[size:]
        return found

    def _take(self, kind: int, length: int, head: bytes) -> None:
        if not self._begun and kind != _STREAM:
            raise OSError("it does not begin as framed snappy does")
        if kind in (_COMPRESSED, _PLAIN) and not 4 <= length <= 2 * _CHUNK_BYTES_MAX:
            raise OSError(f"a chunk of {length:,} bytes")
        data = self._file.read(length)
        if len(data) < length:
            raise EOFError("it ends within a chunk")
        if kind == _STREAM:
            if head + data != _IDENTIFIER:
                raise OSError("it does not begin as framed snappy does")
            self._begun = True
        elif kind in (_COMPRESSED, _PLAIN):
            self._ready = _uncompressed(data[4:]) if kind == _COMPRESSED else data[4:]
            if masked_crc32c(self._ready) != int.from_bytes(data[:4], "little"):
                raise OSError("a chunk has another checksum than its data")
        elif kind < _SKIPPABLE_FROM:
            raise OSError(f"a chunk of the unknown kind {kind:#04x}")


def _uncompressed(data: bytes) -> bytes:
    size, known = 0, False
    for at, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << (7 * at)
        known = byte < 0x80
        if known:
            break
    if not known or size > _CHUNK_BYTES_MAX:
        raise OSError("a chunk without a usable length")
    return bytes(pa.decompress(data, decompressed_size=size, codec="snappy", asbytes=True))


def masked_crc32c(data: bytes) -> int:
    """Return the CRC-32C of some bytes as the format stores it: rotated, and a constant added."""
    crc = int(_compiled()(np.frombuffer(data, np.uint8), _table()))
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(data: Any, table: Any) -> int:
    """Return the CRC-32C of an array of bytes."""
    crc = 0xFFFFFFFF
    for at in range(data.size):
        crc = table[(crc ^ data[at]) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@lru_cache(maxsize=1)
def _table() -> Any:
    table = np.arange(256, dtype=np.int64)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ 0x82F63B78, table >> 1)
    return table


@lru_cache(maxsize=1)
def _compiled() -> Any:
    from ringhaul.cql.compiled import COUNT, INT64S, PAGE, kernel

    return kernel(COUNT(PAGE, INT64S))(crc32c)
