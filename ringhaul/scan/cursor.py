"""The position of a scan as text: the rest of its ranges, each with its paging state. Pure.

The form is `lo:hi;lo:hi@STATE`, where STATE is the server's paging state of a started range, in
base64. It is valid on every node and after a restart.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from ringhaul.cql.tokens import murmur3_tokens
from ringhaul.scan.ranges import TokenRange, unpack_range


class Rest(NamedTuple):
    """The rest of a range: all of it, or what comes after a paging state."""

    range: TokenRange
    state: bytes | None = None


def pack_cursor(rests: Iterable[Rest]) -> str:
    return ";".join(
        f"{lo}:{hi}" + (f"@{base64.b64encode(state).decode()}" if state else "")
        for (lo, hi), state in rests
    )


def unpack_cursor(packed: str) -> list[Rest]:
    """Return what `pack_cursor` packed. Raises ValueError for anything else."""
    rests = []
    for part in packed.split(";") if packed else []:
        tokens, at, state = part.partition("@")
        try:
            rests.append(
                Rest(unpack_range(tokens), base64.b64decode(state, validate=True) if at else None)
            )
        except binascii.Error as error:
            raise ValueError(f"not a paging state: {state!r}") from error
    return rests


def token_reached(state: bytes) -> int | None:
    """Return the token of the partition that a paging state points into; None if unknown.

    The state belongs to the server. Since native protocol v4 it begins with the length and bytes of
    that partition's key. Callers check that the token is within the range.
    """
    length, begin = _unsigned_vint(state)
    if not 0 < length <= len(state) - begin:
        return None
    key = state[begin : begin + length]
    return int(murmur3_tokens(pa.array([key], pa.binary()))[0])


def _unsigned_vint(data: bytes) -> tuple[int, int]:
    """Return the number that `data` begins with, and the offset after it; (0, 0) if it is cut off.

    The first byte has as many leading 1 bits as bytes follow it.
    """
    if not data:
        return 0, 0
    more = 8 - (data[0] ^ 0xFF).bit_length()
    if len(data) <= more:
        return 0, 0
    value = data[0] & (0xFF >> more)
    return int.from_bytes(bytes([value]) + data[1 : 1 + more], "big"), 1 + more
