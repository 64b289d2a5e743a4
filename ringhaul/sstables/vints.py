"""Cassandra's variable-length integers (`VIntCoding`), and byte strings with a length before them.

The number of leading ones in the first byte is the number of bytes that follow; the remaining bits
are the value, big-endian. So values below 128 take one byte, and any 64 bits take nine.
"""

from __future__ import annotations

_BITS_64 = (1 << 64) - 1


def unsigned_vint(value: int) -> bytes:
    """Return an integer as an unsigned vint; a negative one as its 64 bits of two's complement."""
    value &= _BITS_64
    extra_bytes = min(8, max(0, value.bit_length() - 1) // 7)
    if extra_bytes == 8:
        return b"\xff" + value.to_bytes(8, "big")
    ones = (0xFF00 >> extra_bytes) & 0xFF
    encoded = value.to_bytes(extra_bytes + 1, "big")
    return bytes([ones | encoded[0]]) + encoded[1:]


def signed_vint(value: int) -> bytes:
    """Return an int64 as a signed vint: 0, -1, 1, -2, ... become 0, 1, 2, 3, ..."""
    return unsigned_vint((value << 1) ^ (value >> 63))


def with_vint_length(data: bytes) -> bytes:
    """Return bytes with their length, an unsigned vint, before them."""
    return unsigned_vint(len(data)) + data


def with_short_length(data: bytes) -> bytes:
    """Return bytes with their length, 16 bits, before them. Raises `OverflowError` over 65,535."""
    return len(data).to_bytes(2, "big") + data
